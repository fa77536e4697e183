import json

import pytest

from service.descriptor import descriptor_path, own_descriptor, read_descriptor
from service.errors import DescriptorError


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"CONFIG_FILE": ""}, None),
        ({"CONFIG_FILE": "/a/b.json"}, "/a/b.json"),
        ({"XAPP_DESCRIPTOR_PATH": "/opt/ric/config"}, "/opt/ric/config/config-file.json"),
        ({"CONFIG_FILE": "/a/b.json", "XAPP_DESCRIPTOR_PATH": "/c"}, "/a/b.json"),
    ],
)
def test_the_file_is_named_as_the_platform_names_it(environment, expected):
    path = descriptor_path(environment)
    assert (None if path is None else str(path)) == expected


def test_a_descriptor_keeps_everything_that_it_says(tmp_path):
    fields = {"xapp_name": "cast", "version": "1.0.0", "controls": {"größe": [1, 2.5, None]}}
    path = tmp_path / "config-file.json"
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False), encoding="utf-8")
    descriptor = read_descriptor(path)
    assert descriptor.name == "cast"
    assert json.loads(descriptor.text) == fields


def test_the_name_goes_before_the_old_spelling_of_it(tmp_path):
    path = tmp_path / "config-file.json"
    path.write_text('{"name": "new", "xapp_name": "old"}')
    assert read_descriptor(path).name == "new"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b'{"name": "a", "x": NaN}', "NaN"),
        (b"[" * 100_000, "JSON"),
        (b"[]", "a list"),
        (b'{"version": "1.0.0"}', "version"),
        (b'{"name": 5}', "name"),
        (b'{"name": "a"}' + b" " * (1 << 20), "1048576 bytes"),
    ],
)
def test_a_damaged_descriptor_is_refused_with_what_was_expected(tmp_path, content, complaint):
    path = tmp_path / "config-file.json"
    path.write_bytes(content)
    with pytest.raises(DescriptorError, match=complaint):
        read_descriptor(path)


def test_a_descriptor_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DescriptorError, match=r"absent\.json.*CONFIG_FILE"):
        read_descriptor(tmp_path / "absent.json")


def test_half_a_surrogate_pair_can_be_sent(tmp_path):
    path = tmp_path / "config-file.json"
    path.write_text(r'{"name": "a", "x": "\ud800"}')
    read_descriptor(path).text.encode()


def test_without_a_descriptor_no_message_type_is_claimed():
    descriptor = own_descriptor("rancast", "0.1.0")
    assert json.loads(descriptor.text) == {
        "name": "rancast",
        "version": "0.1.0",
        "messaging": {"ports": []},
    }
