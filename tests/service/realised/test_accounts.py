import pytest

from model.predictor import ModelIdentity, Rung
from service.realised.accounts import MOST_LEVEL_SETS, MOST_MODELS, Accounts
from service.realised.scores import SUMS_BYTES
from tests.service.realised.makers import forecast

DEFAULT = (0.1, 0.5, 0.9)


@pytest.fixture
def accounts():
    return Accounts(1000, DEFAULT)


def identity(number: int) -> ModelIdentity:
    return ModelIdentity("m", str(number), f"sha256:{number}")


def test_a_model_a_rung_and_levels_have_one_account(accounts):
    model, account, _ = accounts.open(forecast())
    assert accounts.open(forecast("b", value=3.0)) == (model, account, [])
    assert accounts[account.number] is account
    others = [
        forecast(rung=Rung.BASELINE),
        forecast(levels=(0.2, 0.8)),
        forecast(model=identity(1)),
    ]
    numbers = {accounts.open(other)[1].number for other in others}
    assert len(numbers | {account.number}) == 4


def test_the_same_version_with_another_digest_is_another_model(accounts):
    first, _, _ = accounts.open(forecast(model=ModelIdentity("m", "1", "sha256:a")))
    second, _, _ = accounts.open(forecast(model=ModelIdentity("m", "1", "sha256:b")))
    assert first != second


def test_a_model_has_so_many_sets_of_levels_and_room_for_the_default_one(accounts):
    for number in range(MOST_LEVEL_SETS - 1):
        assert accounts.open(forecast(levels=(0.1 + number / 100, 0.9)))[1] is not None
    assert accounts.open(forecast(levels=(0.3, 0.7)))[1] is None
    assert accounts.open(forecast(levels=DEFAULT))[1] is not None
    assert accounts.open(forecast(levels=(0.1, 0.9), rung=Rung.SHORT))[1] is not None
    assert accounts.open(forecast(levels=(0.3, 0.7), model=identity(1)))[1] is not None


def test_the_model_that_forecast_longest_ago_makes_room(accounts):
    opened = [accounts.open(forecast(model=identity(n)))[1] for n in range(MOST_MODELS)]
    accounts.open(forecast(model=identity(0)))
    _, _, closed = accounts.open(forecast(model=identity(MOST_MODELS)))
    assert closed == [opened[1].number]
    left = {account.key.model for account in accounts}
    assert identity(0) in left
    assert identity(1) not in left
    again = accounts.open(forecast(model=identity(1)))[1]
    assert again.number not in {account.number for account in opened}


def test_accounts_come_in_the_order_of_their_names(accounts):
    for number in (2, 0, 1):
        accounts.open(forecast(model=identity(number), rung=Rung.BASELINE))
        accounts.open(forecast(model=identity(number)))
    keys = [(a.key.model.version, a.key.rung) for a in accounts]
    assert keys == [(str(n), rung) for n in range(3) for rung in (Rung.FULL, Rung.BASELINE)]


def test_the_sums_of_an_account_take_what_is_stated(accounts):
    scores = accounts.open(forecast())[1].scores
    assert scores._slots.nbytes + scores._total.nbytes == SUMS_BYTES
    assert Accounts.most_bytes == MOST_MODELS * MOST_LEVEL_SETS * len(Rung) * SUMS_BYTES
