"""OPUS-CAT's interface: the requests of its plug-ins."""

from transformer_cli.extensions.serving.application import ServerOptions
from transformer_cli.extensions.serving.request_values import ApiKeys

from .served_translators import LINES, served, small_runs, small_translator

TRANSLATORS = small_translator(), small_translator("it", "en")
PATH = "/MTRestService/TranslateJson"
VALUES = {"tokenCode": "0", "input": LINES[5], "srcLangCode": "en", "trgLangCode": "it", "modelTag": ""}


def test_a_segment_is_translated() -> None:
    [expected] = TRANSLATORS[0].translate(LINES[5:6])
    with served(small_runs(*TRANSLATORS)) as (client, _):
        assert client.get(PATH, params=VALUES).json() == {"translation": expected.text}
        assert client.get(PATH, params={**VALUES, "input": ""}).json() == {"translation": ""}


def test_the_pairs_of_languages_are_listed() -> None:
    with served(small_runs(*TRANSLATORS)) as (client, _):
        answer = client.get("/MTRestService/ListSupportedLanguagePairs", params={"tokenCode": "0"})
        assert answer.json() == ["en-it", "it-en"]


def test_a_pair_has_no_tags_to_choose_among() -> None:
    with served(small_runs(*TRANSLATORS)) as (client, _):
        query = {"tokenCode": "0", "srcLangCode": "en", "trgLangCode": "it"}
        answer = client.get("/MTRestService/GetLanguagePairModelTags", params=query)
        assert (answer.status_code, answer.json()) == (200, [])


def test_errors_are_said_and_a_key_is_the_token() -> None:
    with served(small_runs(*TRANSLATORS), ServerOptions(keys=ApiKeys(["k"]))) as (client, _):
        assert client.get(PATH, params=VALUES).status_code == 403
        with_key = {**VALUES, "tokenCode": "k"}
        assert client.get(PATH, params=with_key).status_code == 200
        assert client.get(PATH, params={**with_key, "trgLangCode": "zz"}).status_code == 400
        assert client.get(PATH, params={**with_key, "srcLangCode": ""}).status_code == 400
