# content written through a mapping, under the old times
cp -p "$file" /tmp/old
cat > /tmp/map.py <<'END'
import mmap
import sys

with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
    mapping[0:1] = b"X"
    mapping.flush()
END
python3 /tmp/map.py "$file"
touch -r /tmp/old "$file"
