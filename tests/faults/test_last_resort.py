"""What a plugin can do to the process: the daemon goes on without it, or ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from agenthost.testing.processes import DaemonProcess

from tests.faults.wild import (
    PLUGIN,
    Wild,
    ends_by_itself,
    said,
    serves,
    signalled,
    status_of_wild,
    strike,
)

SPIN = """
async def fault(daemon):
    while True:
        pass
"""
HELD = """
async def fault(daemon):
    ctypes.PyDLL(None).sleep(3600)
"""
GOES_ON = {
    "sys.exit in a handler": "async def fault(daemon):\n    sys.exit(3)",
    "an interrupt in a handler": (
        "async def fault(daemon):\n    raise KeyboardInterrupt"
    ),
    "sys.exit in a callback of the loop": """
        async def fault(daemon):
            asyncio.get_running_loop().call_soon(sys.exit, 3)
    """,
    "sys.exit in a task of its own": """
        tasks = []
        async def end():
            sys.exit(3)
        async def fault(daemon):
            tasks.append(asyncio.create_task(end()))
    """,
    "sys.exit in a thread": (
        "async def fault(daemon):\n    threading.Thread(target=sys.exit).start()"
    ),
    "an endless loop in a thread": """
        def spin():
            while True:
                pass
        async def fault(daemon):
            threading.Thread(target=spin, daemon=True).start()
    """,
}
ENDS = {
    "the loop is stopped": (
        "async def fault(daemon):\n    asyncio.get_running_loop().stop()"
    ),
    "every task is cancelled": """
        async def fault(daemon):
            for task in asyncio.all_tasks():
                task.cancel()
    """,
}
AT_BOOT = {
    "sys.exit in a hook": "def at_boot():\n    sys.exit(3)",
    "sys.exit at the start of a service": "async def start(daemon):\n    sys.exit(3)",
    "an interrupt at the start of a service": (
        "async def start(daemon):\n    raise KeyboardInterrupt"
    ),
    "a service that cancels itself": (
        "async def start(daemon):\n    asyncio.current_task().cancel()\n"
        "    await asyncio.sleep(0)"
    ),
}
HANGS = """
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
"""


def charged_with_a_task(daemon: DaemonProcess) -> None:
    status, reason = status_of_wild(daemon)
    assert status == "failed"
    assert "SystemExit: 3" in reason


def test_sys_exit_in_a_task_ends_that_task_and_its_plugin_alone(tmp_path: Path) -> None:
    wild = Wild(tmp_path, GOES_ON["sys.exit in a task of its own"])
    with wild.daemon() as daemon:
        strike(daemon)
        assert said(daemon, "was to be ended by plugin:wild")
        charged_with_a_task(daemon)
        assert daemon.http.get("/api/health").json()["status"] == "degraded"
        assert daemon.terminate() == 0


def test_a_stopped_loop_ends_the_process_and_gives_the_home_back(
    tmp_path: Path,
) -> None:
    wild = Wild(tmp_path, ENDS["the loop is stopped"])
    with wild.daemon() as daemon:
        strike(daemon)
        assert ends_by_itself(daemon, 30) == 70
    with wild.daemon() as daemon:
        assert serves(daemon)


@pytest.mark.conformance
def test_a_loop_that_spins_is_named_and_a_second_signal_ends_it(tmp_path: Path) -> None:
    wild = Wild(tmp_path, SPIN)
    with wild.daemon() as daemon:
        strike(daemon, 1.0)
        assert said(daemon, "the event loop stands still, in plugin:wild (wild.fault")
        signalled(daemon, signal.SIGTERM)
        signalled(daemon, signal.SIGINT)
        assert ends_by_itself(daemon, 30) == 130


@pytest.mark.conformance
def test_a_signal_during_the_start_ends_it(tmp_path: Path) -> None:
    wild = Wild(
        tmp_path, f"async def start(daemon):\n    print('hi', file=sys.stderr)\n{HANGS}"
    )
    process = wild.starting()
    assert process.stderr is not None
    while process.stderr.readline() != b"hi\n":
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    wild.does("")
    with wild.daemon() as daemon:
        assert serves(daemon)


@pytest.mark.faults
@pytest.mark.parametrize("fault", GOES_ON)
def test_the_daemon_goes_on_and_ends_in_order(tmp_path: Path, fault: str) -> None:
    wild = Wild(tmp_path, GOES_ON[fault])
    with wild.daemon() as daemon:
        for _ in range(3):
            strike(daemon)
            assert serves(daemon)
        assert daemon.terminate() == 0
    with wild.daemon() as daemon:
        assert serves(daemon)


@pytest.mark.faults
@pytest.mark.parametrize("fault", ENDS)
def test_the_daemon_ends_with_a_failure_that_a_supervisor_sees(
    tmp_path: Path, fault: str
) -> None:
    wild = Wild(tmp_path, ENDS[fault])
    for _ in range(2):
        with wild.daemon() as daemon:
            assert serves(daemon)
            strike(daemon)
            assert ends_by_itself(daemon, 30) == 70


@pytest.mark.faults
@pytest.mark.parametrize("fault", AT_BOOT)
def test_a_fault_at_the_start_costs_its_plugin_alone(
    tmp_path: Path, fault: str
) -> None:
    with Wild(tmp_path, AT_BOOT[fault]).daemon() as daemon:
        assert status_of_wild(daemon)[0] == "failed"
        assert daemon.http.get("/api/health").json()["status"] == "degraded"
        assert daemon.terminate() == 0


@pytest.mark.faults
def test_a_service_whose_start_hangs_is_given_up(tmp_path: Path) -> None:
    wild = Wild(tmp_path, f"async def start(daemon):{HANGS}")
    with wild.daemon() as daemon:
        status, reason = status_of_wild(daemon)
        assert status == "failed"
        assert "service wild of plugin:wild took longer than 30 s" in reason
        assert daemon.terminate() == 0


@pytest.mark.faults
def test_a_service_whose_stop_hangs_is_left_behind(tmp_path: Path) -> None:
    with Wild(tmp_path, f"async def stop(daemon):{HANGS}").daemon() as daemon:
        assert daemon.terminate(40) == 0
        assert "service wild of plugin:wild took longer than 10 s" in daemon.log


@pytest.mark.faults
def test_a_thread_that_stays_does_not_keep_the_process(tmp_path: Path) -> None:
    stays = """
        async def fault(daemon):
            sleep = threading.Thread(target=time.sleep, args=(3600,), name="stays")
            sleep.start()
    """
    with Wild(tmp_path, stays).daemon() as daemon:
        strike(daemon)
        assert daemon.terminate(30) == 0
        assert "threads that do not end were left behind: " in daemon.log
        assert "stays" in daemon.log


@pytest.mark.faults
def test_a_signal_that_a_blocked_loop_does_not_take_up_ends_the_process(
    tmp_path: Path,
) -> None:
    blocked = "async def fault(daemon):\n    time.sleep(3600)"
    with Wild(tmp_path, blocked).daemon() as daemon:
        strike(daemon, 1.0)
        assert said(daemon, "the event loop stands still")
        begun = time.monotonic()
        assert daemon.terminate(30) == 70
        assert time.monotonic() - begun < 15


@pytest.mark.faults
def test_an_end_whose_loop_is_blocked_is_bounded(tmp_path: Path) -> None:
    blocks = "async def stop(daemon):\n    time.sleep(3600)"
    with Wild(tmp_path, blocks).daemon() as daemon:
        assert daemon.terminate(90) == 70


@pytest.mark.faults
def test_a_stall_is_named_once_and_told_with_its_length(tmp_path: Path) -> None:
    blocks = "async def fault(daemon):\n    time.sleep(3)"
    with Wild(tmp_path, blocks).daemon() as daemon:
        strike(daemon, 10)
        assert said(daemon, "the event loop stood still for 3.")
        assert daemon.log.count("the event loop stands still") == 1
        assert daemon.http.get("/api/health").json()["status"] == "degraded"
        account = daemon.http.get("/api/health/detail").json()["plugin_time"][PLUGIN]
        assert account["stalls"] == 1
        assert 2.5 < account["stalled"] < 4.5
        assert account["stalled_in"].startswith("wild.fault line")
        assert (
            'agenthost_plugin_stalls_total{plugin="plugin:wild"} 1.0'
            in daemon.http.get("/metrics").text
        )


@pytest.mark.setting("process.stall_limit_secs")
@pytest.mark.faults
def test_three_forced_ends_in_a_plugin_leave_it_out(tmp_path: Path) -> None:
    wild = Wild(tmp_path, SPIN, AGENTHOST_PROCESS__STALL_LIMIT_SECS="2")
    for _ in range(3):
        with wild.daemon() as daemon:
            assert status_of_wild(daemon)[0] == "enabled"
            strike(daemon, 1.0)
            assert ends_by_itself(daemon, 30) == 70
    with wild.daemon() as daemon:
        status, reason = status_of_wild(daemon)
        assert status == "failed"
        assert "the daemon stood still in it and was ended 3 times" in reason
        health = daemon.http.get("/api/health/detail").json()
        assert health["status"] == "degraded"
        assert "plugin:wild is left out" in " ".join(health["config_warnings"])
        assert daemon.terminate() == 0


@pytest.mark.faults
def test_a_c_function_that_holds_the_interpreter_is_ended_and_named_later(
    tmp_path: Path,
) -> None:
    wild = Wild(tmp_path, HELD, AGENTHOST_PROCESS__STALL_LIMIT_SECS="1")
    with wild.daemon() as daemon:
        strike(daemon, 1.0)
        assert ends_by_itself(daemon, 60) == 1
    with wild.daemon() as daemon:
        assert "the last end was forced, in plugin:wild" in daemon.log
    assert '"what": "forced", "plugin": "plugin:wild"' in wild.incidents


@pytest.mark.faults
def test_three_starts_that_die_make_the_next_one_safe(tmp_path: Path) -> None:
    wild = Wild(tmp_path, "def at_boot():\n    os._exit(9)")
    for _ in range(3):
        assert wild.failing_start() == 9
    with wild.daemon() as daemon:
        assert status_of_wild(daemon) == (
            "failed",
            "left out: a safe start, since others failed",
        )
        warnings = daemon.http.get("/api/health/detail").json()["config_warnings"]
        assert any("3 starts in ten minutes" in said for said in warnings)
        assert daemon.terminate() == 0
    wild.does("")
    with wild.daemon() as daemon:
        assert status_of_wild(daemon)[0] == "enabled"


@pytest.mark.faults
def test_a_process_that_was_stopped_for_30_s_is_not_ended(tmp_path: Path) -> None:
    wild = Wild(tmp_path, AGENTHOST_PROCESS__STALL_LIMIT_SECS="1")
    with wild.daemon() as daemon:
        signalled(daemon, signal.SIGSTOP)
        time.sleep(30)
        signalled(daemon, signal.SIGCONT)
        assert serves(daemon)
        time.sleep(2)
        assert serves(daemon)
        assert daemon.http.get("/api/health").json()["status"] == "ok"
        assert daemon.terminate() == 0
