"""Reads PromQL as Prometheus would, and works out which labels the result can have.

An expression that names a metric or a label that nobody exports, or joins series that can never
match, is no error to Prometheus: it is empty for ever. Here it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import promql_parser as promql

from tests.monitoring.series import Exported


class ExpressionError(AssertionError):
    """An expression that would be empty for ever, or is no PromQL."""


class Checker:
    """Works out labels of expressions.

    Args:
        exported: Series that the service exports.
        recorded: Labels of series that rules make.
        values: All values that a label of a series can have, where that is a closed list.
    """

    def __init__(
        self,
        exported: Exported,
        recorded: Mapping[str, frozenset[str]],
        values: Mapping[tuple[str, str], Iterable[str]],
    ) -> None:
        self._labels = {**exported.labels, **recorded}
        self._values = {key: frozenset(each) for key, each in values.items()} | {
            (name, "le"): bounds for name, bounds in exported.buckets.items()
        }

    def labels(self, expression: str) -> frozenset[str]:
        """Labels that the expression's series can have.

        Raises:
            ExpressionError: It would be empty for ever, or is no PromQL.
        """
        try:
            tree = promql.parse(expression)
        except ValueError as error:
            raise ExpressionError(f"no PromQL: {error}\n{expression}") from error
        return self._of(tree) or frozenset()

    def _of(self, tree: Any) -> frozenset[str] | None:
        """Labels of a part, None of a number."""
        match tree:
            case promql.NumberLiteral() | promql.StringLiteral():
                return None
            case promql.VectorSelector():
                return self._of_selector(tree)
            case promql.MatrixSelector():
                return self._of_selector(tree.vector_selector)
            case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
                return self._of(tree.expr)
            case promql.Call():
                return self._of_call(tree)
            case promql.AggregateExpr():
                return self._of_aggregation(tree)
            case promql.BinaryExpr():
                return self._of_operation(tree)
        raise ExpressionError(f"not looked into: {type(tree).__name__}")

    def _of_selector(self, selector: Any) -> frozenset[str]:
        if selector.name not in self._labels:
            raise ExpressionError(f"nobody exports {selector.name}")
        labels = self._labels[selector.name]
        for matcher in selector.matchers.matchers:
            if matcher.name not in labels:
                raise ExpressionError(f"{selector.name} has no label {matcher.name}")
            self._check_value(selector.name, matcher)
        return labels

    def _check_value(self, name: str, matcher: Any) -> None:
        known = self._values.get((name, matcher.name))
        if known is None or matcher.value.startswith("$"):
            return
        is_pattern = matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe)
        for each in matcher.value.split("|") if is_pattern else [matcher.value]:
            pattern = each if is_pattern else re.escape(each)
            if not any(re.fullmatch(pattern, value) for value in known):
                raise ExpressionError(f"{name}: label {matcher.name} is never {each!r}")

    def _of_call(self, call: Any) -> frozenset[str] | None:
        arguments = [self._of(argument) for argument in call.args]
        vectors = [each for each in arguments if each is not None]
        match call.func.name:
            case "absent":
                return frozenset()
            case "histogram_quantile":
                (buckets,) = vectors
                if "le" not in buckets:
                    raise ExpressionError("histogram_quantile of series without le")
                return buckets - {"le"}
            case "label_replace" | "label_join" | "absent_over_time":
                raise ExpressionError(f"not looked into: {call.func.name}")
        return vectors[0] if vectors else None

    def _of_aggregation(self, aggregation: Any) -> frozenset[str]:
        inner = self._of(aggregation.expr)
        if inner is None:
            raise ExpressionError("an aggregation of a number")
        if aggregation.modifier is None:
            return frozenset()
        named = frozenset(aggregation.modifier.labels)
        _demand(named <= inner, "grouped by", named - inner)
        by = aggregation.modifier.type == promql.AggModifierType.By
        return named if by else inner - named

    def _of_operation(self, operation: Any) -> frozenset[str] | None:
        left, right = self._of(operation.lhs), self._of(operation.rhs)
        if left is None or right is None:
            return left if right is None else right
        modifier = operation.modifier
        matching = None if modifier is None else modifier.matching
        if matching is None:
            _demand(left == right, "never equal on both sides:", left ^ right)
            return left
        named = frozenset(matching.labels)
        if matching.type != promql.LabelModifierType.Include:
            raise ExpressionError("not looked into: ignoring")
        _demand(named <= left & right, "matched on", named - (left & right))
        grouped = frozenset(modifier.group_labels or ())
        match modifier.card:
            case promql.VectorMatchCardinality.ManyToOne:
                _demand(grouped <= right, "taken over", grouped - right)
                return left | grouped
            case promql.VectorMatchCardinality.OneToMany:
                _demand(grouped <= left, "taken over", grouped - left)
                return right | grouped
            case promql.VectorMatchCardinality.ManyToMany:  # and, or, unless
                return left
        return named


def _demand(holds: bool, what: str, labels: Iterable[str]) -> None:
    if not holds:
        raise ExpressionError(f"{what} labels that are not there: {', '.join(sorted(labels))}")
