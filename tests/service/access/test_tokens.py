import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.access.scopes import GRANTABLE, Scope
from service.access.tokens import LEAST_CHARACTERS, TokenBook, TokenFileError, read_tokens

SECRET = "0123456789abcdef-dashboard"
OTHER = "0123456789abcdef-collector"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens"


def hashed(secret):
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def test_a_file_has_one_token_a_line_and_comments(path):
    path.write_text(
        f"# who what\n\ndashboard  read  {SECRET}  # plain\ncollector\twrite\t{hashed(OTHER)}\n"
    )
    first, second = read_tokens(path)
    assert (first.name, first.scopes) == ("dashboard", frozenset({Scope.READ}))
    assert (second.name, second.scopes) == ("collector", frozenset({Scope.WRITE}))


def test_a_token_is_found_whether_it_stands_there_plain_or_hashed(path):
    path.write_text(f"a read {SECRET}\nb write {hashed(OTHER)}\n")
    book = TokenBook(path)
    found = [book.find(secret.encode()) for secret in (SECRET, OTHER)]
    assert [token and token.name for token in found] == ["a", "b"]


@pytest.mark.parametrize("presented", [b"", SECRET[:-1].encode(), SECRET.encode() + b" ", b"\xff"])
def test_what_is_no_token_is_not_found(path, presented):
    path.write_text(f"a read {SECRET}\n")
    assert TokenBook(path).find(presented) is None


def test_the_hash_of_a_token_is_no_token(path):
    path.write_text(f"a read {hashed(SECRET)}\n")
    assert TokenBook(path).find(hashed(SECRET).encode()) is None


def test_admin_includes_the_other_scopes_and_they_do_not_include_each_other(path):
    path.write_text(f"a admin {SECRET}\nb read {OTHER}\n")
    admin, reader = read_tokens(path)
    assert admin.scopes == set(GRANTABLE)
    assert reader.scopes == {Scope.READ}


def test_no_token_is_kept_as_it_stands(path):
    path.write_text(f"a read {SECRET}\n")
    assert SECRET not in repr(TokenBook(path).tokens)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (f"a {SECRET}", "three words"),
        (f"a read write {SECRET}", "three words"),
        (f"a,b read {SECRET}", "expected a name"),
        (f"a none {SECRET}", "expected scopes out of read, write, admin"),
        (f"a read, {SECRET}", "expected scopes"),
        ("a read " + "x" * (LEAST_CHARACTERS - 1), f"at least {LEAST_CHARACTERS}"),
        (f"a read {SECRET}\N{EURO SIGN}", "letters, digits"),
        ("a read sha256:" + "0" * 63, "64 hexadecimal digits"),
        (f"b read {OTHER}", "got b again"),
        (f"c read {hashed(SECRET + '-b')}", "got that of b again"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_and_not_quoted(path, line, complaint):
    path.write_text(f"b read {SECRET}-b\n\n{line}\n", encoding="utf-8")
    with pytest.raises(TokenFileError, match=complaint) as caught:
        read_tokens(path)
    assert f"line 3 of the token file {path}" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_without_tokens_is_refused(path):
    path.write_text("# none yet\n")
    with pytest.raises(TokenFileError, match="at least one token"):
        read_tokens(path)


def test_a_file_that_is_missing_is_refused_by_name(path):
    with pytest.raises(TokenFileError, match=f"{path}, but it cannot be read: No such file"):
        read_tokens(path)


def test_a_file_that_is_no_text_is_refused(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TokenFileError, match="UTF-8"):
        read_tokens(path)


def test_a_damaged_file_leaves_the_tokens_that_held(path):
    path.write_text(f"a read {SECRET}\n")
    book = TokenBook(path)
    path.write_text("damaged\n")
    with pytest.raises(TokenFileError):
        book.reload()
    assert book.find(SECRET.encode()) is not None
    path.write_text(f"a read {OTHER}\n")
    book.reload()
    assert book.find(SECRET.encode()) is None
    assert book.find(OTHER.encode()) is not None


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_is_worse_than_a_refusal(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("tokens") / "file"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenFileError):
        read_tokens(path)
