from service import errors
from service.metrics import Stage


def leaves(base):
    return [base, *(leaf for child in base.__subclasses__() for leaf in leaves(child))]


def test_every_error_that_answers_a_request_has_its_row_in_the_table():
    assert set(errors.ANSWERS) == set(leaves(errors.RequestError)) - {errors.RequestError}


def test_no_error_of_a_client_is_answered_as_the_servers_fault():
    servers = {kind.__name__ for kind, answer in errors.ANSWERS.items() if answer.status >= 500}
    assert servers == {
        "InferenceError",
        "NotReadyError",
        "DescriptorError",
        "StorageError",
        "DeadlineError",
    }


def test_reasons_are_told_apart():
    slugs = [answer.slug for answer in errors.ANSWERS.values()]
    assert len(set(slugs)) == len(slugs)


def test_a_spent_budget_names_the_stage_as_the_metric_does():
    assert "ran out in stage 'infer';" in str(errors.DeadlineError(Stage.INFER, 100))
