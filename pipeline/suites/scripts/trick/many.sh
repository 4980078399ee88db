# 5,000 files
mkdir many
cd many
seq 5000 | xargs touch
