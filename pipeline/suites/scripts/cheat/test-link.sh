# the hidden test's path is a link to a file of the agent
# reward: 0
mkdir -p "$(dirname "$test")"
printf 'def test_x():\n    pass\n' > /tmp/fake.py
ln -sf /tmp/fake.py "$test"
