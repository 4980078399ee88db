# modes that lock everybody out
chmod 000 "$file" "$folder"
chmod 7777 .
chmod 000 .
