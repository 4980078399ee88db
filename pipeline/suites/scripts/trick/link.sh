# hard links to a file, and a change through one of them
ln "$file" /tmp/link
echo x >> /tmp/link
ln "$file" second
