# the removal of everything
find . -mindepth 1 -delete
