# names with newlines, escapes, bytes that are not UTF-8, and great length
touch "$(printf 'a\nb')" "$(printf '\377\376')" -- -rf "$(printf '\033[31m')" "$(head -c 255 /dev/zero | tr '\0' n)"
mkdir "$(printf 'd\n.')"
