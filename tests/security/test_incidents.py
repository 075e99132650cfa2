"""What has gone wrong elsewhere, and the tests that say why it does not here."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REPAIR = "plugins/security/test_session_repair.py"
LOOPS = "plugins/security/test_loop_guard.py"
FAILURE = "plugins/toolbox/test_after_failure.py"
SECRETS = "security/test_secret_zeroization.py"
SEAL = "plugins/security/test_secret_zeroization.py"
PAGES = "libraries/values/test_secret_bytes.py"
AGAIN = "security/test_reenacted.py"
RULES = "acceptance/test_every_way_has_a_rule.py"
ACCESS = "plugins/front/test_access.py"
LOGINS = "plugins/front/test_authenticators.py"
KEYS = "plugins/keys/test_keys.py"
ODD_KEYS = "plugins/keys/test_hostile.py"
LOADER = "kernel/plugins/test_loader.py"
ANSWERS = "plugins/approvals/test_answers.py"
RIGHTS = "plugins/orchestration/background/test_rights.py"
SSRF = "plugins/security/test_ssrf_protection.py"
EXPOSED = "kernel/test_config.py"
PROXIES = "plugins/front/test_forwarded.py"
LIMITS = "plugins/security/gcra_rate_limiter/test_over_http.py"
WAITING = "plugins/approvals/test_waiting.py"
TEMPLATE = "plugin_template/test_template.py"
WALK = "plugins/orchestration/workflows/test_walk.py"
MANIFESTS = "plugins/agents/test_manifests.py"
PINNED = "plugins/mcp/client/test_approving.py"
KEPT = "plugins/openai_compat/responses/test_keeping.py"

INCIDENTS = {
    "a model invents what a tool that failed would have said, and writes it down": (
        f"{FAILURE}::test_a_write_behind_a_failure_is_not_made_until_it_is_asked_for_again",
    ),
    "a call is repeated for ever": (
        f"{LOOPS}::test_a_model_that_cannot_stop_is_warned_and_then_its_turn_ends",
        f"{LOOPS}::test_a_loop_of_any_period_is_stopped_however_new_its_calls_look",
        "security/test_loop_guard.py::test_loops_are_stopped_soon_after_they_closed",
    ),
    "agents ask one another in a circle": (
        f"{LOOPS}::test_agents_that_ask_one_another_the_same_are_stopped",
    ),
    "a guard against loops stops honest work": (
        "security/test_loop_guard.py::test_honest_turns_are_let_go_on",
    ),
    "a loop begins anew after a restart": (
        f"{LOOPS}::test_a_turn_that_goes_on_after_a_restart_is_in_its_loop_still",
    ),
    "a summary parts a call from its result, and no provider takes the session": (
        f"{REPAIR}::test_whatever_stands_there_every_call_has_one_result",
        f"{REPAIR}::test_a_result_without_call_becomes_no_word_of_the_user",
    ),
    "half a call is stored, and every later message fails": (
        f"{REPAIR}::test_arguments_that_broke_off_are_not_sent",
    ),
    "a crash or an import leaves a session that one provider takes and another not": (
        f"{REPAIR}::test_broken_conversations_are_taken_by_every_vendor",
        f"{REPAIR}::test_a_late_result_stands_behind_its_call_and_not_beside_a_stand_in",
    ),
    "keys appear in logs, answers, files and environments": (
        f"{SECRETS}::test_deleted_keys_are_nowhere",
        f"{PAGES}::test_a_secret_is_shown_nowhere",
        f"{PAGES}::test_a_secret_is_not_copied",
    ),
    "a core file or another process shows the keys": (
        f"{PAGES}::test_its_pages_are_locked_and_in_no_dump",
        f"{SEAL}::test_a_sealed_process_is_not_dumpable_and_leaves_no_core",
    ),
    "a web page opens the socket of a local daemon and takes its token": (
        f"{ACCESS}::test_a_foreign_page_cannot_open_a_socket",
        f"{ACCESS}::test_a_foreign_page_cannot_change_anything",
        f"{ACCESS}::test_a_foreign_host_is_refused",
        f"{ODD_KEYS}::test_a_key_in_the_query_is_never_looked_at",
        "security/test_front.py::test_pages_of_others_are_kept_out",
    ),
    "a stranger on the machine writes a setting that becomes a program": (
        f"{RULES}::test_every_route_turns_a_stranger_away",
        f"{RULES}::test_every_way_out_has_a_rule",
    ),
    "a client says itself what it may": (
        f"{AGAIN}::test_what_a_client_says_of_itself_gives_it_no_right",
        f"{KEYS}::test_a_key_makes_none_that_can_more_or_for_longer",
        f"{PROXIES}::test_who_is_no_trusted_proxy_is_believed_nothing",
    ),
    "a page tries keys at a local daemon until one fits": (
        f"{LOGINS}::test_wrong_keys_are_refused_by_a_limit_on_logins",
        f"{LIMITS}::test_wrong_keys_cost_more_and_are_refused_before_they_are_read",
    ),
    "one way in asks no rule that the others ask": (
        f"{RULES}::test_no_tool_is_done_for_an_agent_that_was_not_given_it",
        f"{ANSWERS}::test_a_choice_is_one_of_those_offered",
        f"{ANSWERS}::test_the_digest_of_another_question_is_refused",
        "plugins/approvals/test_waiting.py::test_without_an_approver_an_ask_is_a_deny",
    ),
    "what lies in a folder, or is merely installed, is loaded": (
        f"{AGAIN}::test_what_lies_in_the_home_or_beside_it_is_not_run",
        f"{AGAIN}::test_no_plugin_is_made_of_a_file_that_lies_somewhere",
        f"{LOADER}::test_another_distribution_is_off_until_listed",
        f"{TEMPLATE}::test_a_rendered_plugin_is_off_until_it_is_listed",
    ),
    "a key, an id or a filter becomes SQL": (
        f"{AGAIN}::test_words_of_sql_are_words_everywhere",
        f"{ODD_KEYS}::test_no_header_however_odd_breaks_anything",
    ),
    "a request to test, preview or check something runs code": (
        f"{AGAIN}::test_nothing_runs_text_as_code_but_what_writes_a_classs_init",
        f"{AGAIN}::test_a_template_language_makes_new_plugins_and_nothing_else",
        f"{WALK}::test_what_is_put_in_is_never_expanded_again",
        f"{MANIFESTS}::test_any_text_is_a_manifest_or_an_invalid_input",
    ),
    "a fix leaves the route next door open": (
        f"{RULES}::test_every_route_turns_a_stranger_away",
        f"{ACCESS}::test_with_a_key_only_cors_origins_may_read",
    ),
    "a forged row of the database becomes an object that acts": (
        f"{AGAIN}::test_nothing_makes_objects_of_what_is_stored_or_sent",
        "plugins/records/test_memory.py::test_what_is_not_json_is_refused",
        f"{ANSWERS}::test_a_question_that_was_changed_in_the_store_cannot_be_approved",
    ),
    "an archive writes outside the folder it is unpacked in": (
        f"{AGAIN}::test_no_archive_is_unpacked_but_what_the_command_line_names",
    ),
    "a url of somebody else leads to a service that only we can reach": (
        f"{SSRF}::test_no_form_of_a_local_host_is_reached",
        f"{SSRF}::test_no_redirect_leads_to_a_local_host",
        f"{SSRF}::test_a_name_that_turns_local_between_check_and_connect_gains_nothing",
    ),
    "one user recalls what another has said": (
        f"{AGAIN}::test_what_one_agent_sees_is_the_same_whatever_another_has",
        "plugins/http_api/test_files.py::test_somebody_elses_file_is_not_there",
        f"{KEPT}::test_what_a_client_can_name_is_read_with_its_owner_alone",
    ),
    "a stored job acts with rights that its maker has no more": (
        f"{RIGHTS}::test_a_revoked_key_ends_what_it_has_stored",
        f"{RIGHTS}::test_a_keys_scopes_are_those_of_now",
        f"{RIGHTS}::test_a_key_made_anew_inherits_nothing_by_its_name",
    ),
    "without a key the API is open to the network": (
        f"{EXPOSED}::test_the_network_is_open_only_on_purpose",
        f"{ACCESS}::test_without_a_key_others_are_refused",
    ),
    "a preview of a link that a model wrote gives a secret away": (
        "plugins/channels/telegram/test_adapter.py::test_no_preview_of_a_link_is_fetched",
        "plugins/channels/slack/test_adapter.py::test_no_preview_of_a_link_is_fetched",
    ),
    "the command or the tools of an MCP server change after approval": (
        f"{PINNED}::test_a_changed_tool_vanishes_until_a_person_approves_what_they_saw",
        f"{PINNED}::test_another_command_is_not_started_before_a_person_approves_it",
    ),
    "the description of an MCP server's tool tells the model what to do": (
        f"{PINNED}::test_an_instruction_is_held_back_and_labelled_once_it_is_approved",
    ),
}

NOT_ANSWERED = {
    "a shell expands what was checked": "tools/agenthost_tools/shell_exec",
    "skills of a marketplace are malicious": "skills",
    "what a page says is remembered as an instruction": (
        "security/agenthost_security/taint_tracking"
    ),
    "another agent's card or task is believed": "a2a",
    "a dependency is replaced at its source": (
        "security/agenthost_security/manifest_signing"
    ),
}
"""Each with the plugin that it waits for; who builds that brings the test."""


@pytest.mark.parametrize("incident", INCIDENTS)
def test_each_incident_has_a_test_that_is_there(incident: str) -> None:
    for test in INCIDENTS[incident]:
        file, _, name = test.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text, test


@pytest.mark.parametrize("incident", NOT_ANSWERED)
def test_what_is_not_answered_waits_for_a_plugin_that_is_not_there(
    incident: str,
) -> None:
    plugins = TESTS.parent / "plugins"
    awaited = plugins / NOT_ANSWERED[incident]
    assert plugins.is_dir()
    assert not awaited.exists()
    assert not awaited.with_suffix(".py").exists()
