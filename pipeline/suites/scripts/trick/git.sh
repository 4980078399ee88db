# another .git under the old name
mv .git /tmp/git
git init -q .
git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x
