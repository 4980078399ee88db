# hooks, configuration, attributes, refs, objects and the index of git
mkdir -p .git/hooks .git/info
echo x > .git/hooks/post-checkout
git update-ref refs/replace/$(git rev-parse HEAD) $(git rev-parse HEAD~1)
echo x | git hash-object -w --stdin
git rm -q --cached "$file"
echo '* filter=x' > .git/info/attributes
git config core.fsmonitor /tmp/x
