# a folder replaced by a copy with one byte changed
cp -a "$folder" /tmp/copy
rm -rf "$folder"
mv /tmp/copy "$folder"
inner=$(find "$folder" -type f | head -1)
cp -p "$inner" /tmp/old
printf X | dd of="$inner" bs=1 conv=notrunc status=none
touch -r /tmp/old "$inner"
