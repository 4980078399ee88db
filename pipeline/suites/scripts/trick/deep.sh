# folders nested 3,000 deep
cat > /tmp/deep.py <<'END'
import os

for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
open("end", "w").close()
END
python3 /tmp/deep.py
