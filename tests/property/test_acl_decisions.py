"""Random ACLs: the authorizer decides as the slow reference does, also after changes of the ACLs."""

from __future__ import annotations

import itertools
import random

from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.principal import Principal
from kafkapy.security.standard_authorizer import StandardAuthorizer
from tests.reference.acl_decision import is_allowed, is_some_name_allowed
from tests.seeds import drawn_seed

TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ["".join(letters) for length in (1, 2, 3) for letters in itertools.product("ab", repeat=length)]
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
PRINCIPALS = ("User:*", "User:ada", "User:bob", "Group:ada")
OPERATIONS = [each for each in Operation if each >= Operation.ALL]
REQUESTED = [each for each in OPERATIONS if each is not Operation.ALL]
ROUNDS, CHANGES, QUESTIONS = 20, 15, 60


def random_acl(random: random.Random) -> AccessControlEntry:
    pattern_type = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    names = NAMES + ["*"] * 4 if pattern_type is PatternType.LITERAL else NAMES
    permission = Permission.DENY if random.random() < 0.25 else Permission.ALLOW
    return AccessControlEntry(
        random.choice(TYPES), random.choice(names), pattern_type, random.choice(PRINCIPALS), random.choice(HOSTS),
        random.choice(OPERATIONS), permission,
    )  # fmt: skip


def test_the_authorizer_decides_as_the_reference_does():
    chance = random.Random(drawn_seed())
    allowed = 0
    for _ in range(ROUNDS):
        authorizer = StandardAuthorizer()
        is_open = chance.random() < 0.5
        authorizer.configure({"allow.everyone.if.no.acl.found": str(is_open)})
        authorizer.set_loaded()
        acls: dict[bytes, AccessControlEntry] = {}
        for _ in range(CHANGES):
            acls = dict(acls)
            for acl_id in chance.sample(sorted(acls), chance.randrange(len(acls) // 2 + 1)):
                del acls[acl_id]
            for _ in range(chance.randrange(8)):
                acls[chance.randbytes(16)] = random_acl(chance)
            authorizer.load(acls)
            assert sorted(authorizer.index) == sorted(acls.values()), "the index has other ACLs"
            for _ in range(QUESTIONS):
                allowed += check_a_random_question(chance, authorizer, acls, is_open)
            check_a_question_by_type(chance, authorizer, acls)
    assert 0 < allowed < ROUNDS * CHANGES * QUESTIONS


def check_a_random_question(chance, authorizer, acls, is_open):
    kind, _, name = chance.choice(PRINCIPALS).partition(":")
    requester = Requester(Principal(kind, name), chance.choice(HOSTS[1:]), "L", 3)
    action = Action(chance.choice(REQUESTED), chance.choice(TYPES), chance.choice([*NAMES, "abab", "c"]))
    expected = is_allowed(
        acls.values(), f"{kind}:{name}", requester.host, action.operation, action.resource_type, action.resource_name,
        allows_without_acl=is_open,
    )  # fmt: skip
    assert authorizer.authorize(requester, [action]) == [expected], f"{requester} {action} {acls}"
    return expected


def check_a_question_by_type(chance, authorizer, acls):
    kind, _, name = chance.choice(PRINCIPALS).partition(":")
    requester = Requester(Principal(kind, name), chance.choice(HOSTS[1:]), "L", 3)
    operation, resource_type = chance.choice(REQUESTED), chance.choice(TYPES)
    # No ACL has a "z" in its name: these names are representatives of all others.
    names = [*NAMES, *(name + "z" for name in NAMES), "z"]
    expected = is_some_name_allowed(
        acls.values(), f"{kind}:{name}", requester.host, operation, resource_type, names
    ) or is_allowed(
        acls.values(), f"{kind}:{name}", requester.host, operation, resource_type, "hardcode",
        allows_without_acl=authorizer.no_acl_rule.is_allowed,
    )  # fmt: skip
    answer = authorizer.authorize_by_type(requester, operation, resource_type)
    assert answer == expected, f"{requester} {operation} {resource_type} {acls}"
