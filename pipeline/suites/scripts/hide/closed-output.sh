# a process that closed its output
exec >&- 2>&-
detach sleep 300 &
