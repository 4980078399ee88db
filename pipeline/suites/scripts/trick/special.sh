# FIFOs, sockets and sparse files
mkfifo pipe
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
truncate -s 5G sparse
rm -f "$file"
mkfifo "$file"
