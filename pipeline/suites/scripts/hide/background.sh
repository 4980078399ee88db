# a background job
sleep 300 &
