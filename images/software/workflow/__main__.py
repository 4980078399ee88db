"""Start the server of the workflow image: `/usr/bin/python3 -I /opt/arena/workflow`. Wiring, and nothing else."""

import os
import signal
import sys

HOME, WORKSPACE, PORT = "/opt/arena", "/workspace/repo", 8000


def main() -> None:
    """Serve until SIGTERM."""
    # PID 1 ignores signals without a handler: an early stop must not wait for the engine's kill.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    sys.path[:1] = [f"{HOME}/runtime", HOME]
    from arena import absent
    from arena.processes import harden_server

    harden_server()
    absent.install()
    from arena.episode import Arena
    from arena.server import serve
    from arena.wiring import make_arena_parts

    from workflow.environment import WorkflowTask, load_curriculum

    runner, cleanup = make_arena_parts(WORKSPACE)
    task = WorkflowTask(WORKSPACE, runner.agent.uid, runner.agent.gid, load_curriculum())
    task.renew()
    serve(Arena(task, runner, cleanup), "workflow", PORT)


if __name__ == "__main__":
    main()
