# edited, added and removed files
echo x >> "$file"
echo y > added
rm -rf "$folder"
mkdir -p a/b/c
touch a/b/c/d
