# git settings that move the work tree and change how patches apply
# reward: 0
git config apply.whitespace error-all
git config alias.apply '!true'
git config core.worktree /tmp
