from dataclasses import fields, replace

import pytest

from model.compiled import Precision, Target, target


@pytest.fixture
def known(tiny_checkpoint):
    return Target.of(tiny_checkpoint, Precision.FLOAT32)


def test_the_key_depends_on_every_part(known):
    keys = {replace(known, **{field.name: "other"}).key for field in fields(Target)}
    assert len(keys | {known.key}) == len(fields(Target)) + 1


def test_the_same_target_has_the_same_key(known, tiny_checkpoint):
    assert Target.of(tiny_checkpoint, Precision.FLOAT32).key == known.key


def test_a_processor_that_can_do_more_is_another_one(monkeypatch):
    def info(flags):
        return lambda: {"vendor_id": "V", "model": "1", "flags": flags}

    def named(flags):
        monkeypatch.setattr(target, "_cpu_info", info(flags))
        target.processor.cache_clear()
        return target.processor()

    try:
        assert named("avx2 fma") == named("fma avx2")
        assert named("avx2 fma") != named("avx2 fma avx512f")
    finally:
        target.processor.cache_clear()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("avx2", False), ("avx2 avx512_bf16", True), ("amx_bf16 amx_tile", True), ("", False)],
)
def test_products_of_bfloat16_need_instructions_for_them(monkeypatch, flags, expected):
    monkeypatch.setattr(target, "_cpu_info", lambda: {"flags": flags})
    assert target.multiplies_bfloat16() is expected


def test_a_system_without_a_list_of_processors_has_a_name_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(target, "_CPU_INFO", tmp_path / "none")
    target._cpu_info.cache_clear()
    target.processor.cache_clear()
    try:
        assert target.processor()
        assert not target.multiplies_bfloat16()
    finally:
        target._cpu_info.cache_clear()
        target.processor.cache_clear()
