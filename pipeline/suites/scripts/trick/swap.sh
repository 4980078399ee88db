# two files under each other's name
other=$(git ls-files | tail -1)
mv "$file" /tmp/a
mv "$other" "$file"
mv /tmp/a "$other"
