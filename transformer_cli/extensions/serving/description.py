"""What the endpoints of a server take and answer: one table, which `/spec` and `/docs` show."""

import base64
import hashlib
from functools import cache
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from transformer_cli import __version__


class Field(NamedTuple):
    """A parameter of an endpoint."""

    name: str
    meaning: str
    kind: str = "string"
    """As in Swagger: string, integer, boolean, array or file."""
    is_required: bool = False


class Endpoint(NamedTuple):
    """A path and a method of the server."""

    path: str
    method: str
    meaning: str
    answer: str
    """What a request gets that succeeds."""
    fields: tuple[Field, ...] = ()
    group: str = ""


def _group(name: str, *endpoints: Endpoint) -> tuple[Endpoint, ...]:
    return tuple(each._replace(group=name) for each in endpoints)


_KEY = Field("api_key", "Only if the server needs keys.")
_SOURCE = Field("source", "The code of the language of the text, or auto.", is_required=True)
_TARGET = Field(
    "target", "The code of the language into which the text is translated.", is_required=True
)
_TEXT = Field("q", "The text to translate.", is_required=True)
_TAGS = "Names of elements, with commas between them; for tag_handling=xml."
_DOCUMENT_KEY = Field("document_key", "As in the answer of /v2/document.")

ENDPOINTS = (
    *_group(
        "LibreTranslate",
        Endpoint(
            "/translate",
            "post",
            "Translate a text, or in JSON a list of texts.",
            "translatedText; detectedLanguage if source is auto; alternatives if they were asked for; untranslated (true or false for each text) if a sentence stays as it is, because the model loses text of it",
            (
                Field("q", "The text; in JSON also a list of texts.", is_required=True),
                _SOURCE,
                _TARGET,
                Field("format", "text or html."),
                Field("alternatives", "The number of further translations.", "integer"),
                _KEY,
            ),
        ),
        Endpoint(
            "/detect",
            "post",
            "Detect the language of a text.",
            "A list of confidence (0 to 100) and language, the most probable one first",
            (Field("q", "The text.", is_required=True), _KEY),
        ),
        Endpoint(
            "/languages", "get", "The languages of the server.", "A list of code, name, targets"
        ),
        Endpoint(
            "/translate_file",
            "post",
            "Translate a file.",
            "translatedFileUrl: where the translated file can be downloaded",
            (
                Field("file", "The file.", "file", is_required=True),
                _SOURCE,
                _TARGET,
                Field("columns", "For csv and tsv: names or numbers of columns, such as title,3."),
                Field("progress", "true: lines of JSON with the number of sentences done so far."),
                _KEY,
            ),
        ),
        Endpoint("/download_file/{name}", "get", "Download a translated file.", "The file"),
        Endpoint(
            "/frontend/settings", "get", "What a page needs to know about the server.", "Settings"
        ),
        Endpoint("/suggest", "post", "Suggestions are not taken.", "Always refused with 403"),
    ),
    *_group(
        "DeepL (a subset)",
        Endpoint(
            "/v2/translate",
            "post",
            "Translate texts, at most 50.",
            "translations: a list of detected_source_language, text, billed_characters",
            (
                Field("text", "A text, or several.", "array", is_required=True),
                Field("target_lang", "The language of the translations.", is_required=True),
                Field("source_lang", "The language of the texts; absent: it is detected."),
                Field("split_sentences", "0, 1 or nonewlines."),
                Field("tag_handling", "html or xml."),
                Field("ignore_tags", f"Their content is not translated. {_TAGS}"),
                Field("splitting_tags", f"They always end a sentence. {_TAGS}"),
                Field("non_splitting_tags", f"They never end a sentence. {_TAGS}"),
                Field("outline_detection", "Whether other elements may end a sentence.", "boolean"),
                Field("glossary_id", "A glossary of the server."),
            ),
        ),
        Endpoint(
            "/v2/document",
            "post",
            "Begin to translate a document.",
            "document_id, document_key",
            (
                Field("file", "The document.", "file", is_required=True),
                Field("target_lang", "The language of the translation.", is_required=True),
                Field("source_lang", "The language of the document; absent: it is detected."),
                Field("filename", "The name of the file, if it is not that of the form."),
                Field("glossary_id", "A glossary of the server."),
            ),
        ),
        Endpoint(
            "/v2/document/{name}",
            "post",
            "How far the translation of a document is.",
            "document_id, status (queued, translating, done or error), seconds_remaining, billed_characters, error_message",
            (_DOCUMENT_KEY,),
        ),
        Endpoint(
            "/v2/document/{name}/result",
            "post",
            "Download a translated document.",
            "The file; 503 before it is ready",
            (_DOCUMENT_KEY,),
        ),
        Endpoint(
            "/v2/languages",
            "get",
            "The languages.",
            "A list of language, name",
            (Field("type", "source or target."),),
        ),
        Endpoint(
            "/v2/usage", "get", "How much was translated.", "character_count, character_limit"
        ),
        Endpoint(
            "/v2/glossary-language-pairs",
            "get",
            "The directions.",
            "supported_languages: a list of source_lang, target_lang",
        ),
        Endpoint("/v2/glossaries", "get", "The glossaries of the server.", "glossaries: a list"),
        Endpoint(
            "/v2/glossaries",
            "post",
            "Make a glossary; it stays until the server ends.",
            "Its id, name, languages and number of terms",
            (
                Field("name", "A name for people.", is_required=True),
                Field("source_lang", "The language of its source terms.", is_required=True),
                Field("target_lang", "The language of its target terms.", is_required=True),
                Field("entries", "On each line a source term and a target term.", is_required=True),
                Field("entries_format", "tsv or csv."),
            ),
        ),
        Endpoint(
            "/v2/glossaries/{name}",
            "get",
            "One glossary.",
            "Its name, languages and number of terms",
        ),
        Endpoint(
            "/v2/glossaries/{name}",
            "delete",
            "Delete a glossary that a client has made.",
            "Nothing, with 204",
        ),
        Endpoint(
            "/v2/glossaries/{name}/entries",
            "get",
            "The terms of a glossary.",
            "A line for each term: the source, a tab, and the target",
        ),
        Endpoint(
            "/v3/glossaries",
            "get",
            "The glossaries of the server, in the form of version 3.",
            "glossaries: a list",
        ),
        Endpoint(
            "/v3/glossaries/{name}",
            "get",
            "One glossary, in the form of version 3.",
            "Its name and dictionaries",
        ),
    ),
    *_group(
        "OPUS-CAT",
        Endpoint(
            "/MTRestService/TranslateJson",
            "get",
            "Translate a text.",
            "translation",
            (
                Field("srcLangCode", "The source language."),
                Field("trgLangCode", "The target language."),
                Field("input", "The text."),
            ),
        ),
        Endpoint(
            "/MTRestService/ListSupportedLanguagePairs",
            "get",
            "The language pairs.",
            "A list such as en-it",
        ),
    ),
    *_group(
        "What the page uses",
        Endpoint(
            "/translate_stream",
            "post",
            "Translate a text; each sentence comes when it is ready.",
            "Lines of JSON: start, sentence, ..., end",
            (_TEXT, _SOURCE, _TARGET, _KEY),
        ),
        Endpoint(
            "/alternatives", "post", "Other translations of a sentence.", "See docs/serving.md"
        ),
        Endpoint(
            "/likely_words",
            "post",
            "Words that may follow the beginning of a translation.",
            "See docs/serving.md",
        ),
        Endpoint(
            "/explain", "post", "What the model does with a sentence.", "See docs/explaining.md"
        ),
    ),
    *_group(
        "State",
        Endpoint("/health", "get", "Whether the process answers.", "200"),
        Endpoint("/ready", "get", "Whether the models are loaded.", "200, or 503 before"),
        Endpoint("/metrics", "get", "Counts and times, in the text format of Prometheus.", "Text"),
    ),
)
"""All endpoints, except the page itself and these descriptions."""


_TITLE = "tfm serve"
# Clients such as Dialect look at the title of the description, to see whether a server speaks this interface.
_TITLE_OF_SPECIFICATION = "LibreTranslate"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "code{font-size:.95em}h3{margin:1.5rem 0 .2rem}p{margin:.2rem 0}"
    "table{border-collapse:collapse;margin:.4rem 0;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8886}"
)


def description_routes() -> list[Route]:
    """The routes of the description."""
    return [Route("/spec", _spec, methods=["GET"]), Route("/docs", _docs, methods=["GET"])]


async def _spec(request: Request) -> JSONResponse:
    return JSONResponse(swagger())


async def _docs(request: Request) -> HTMLResponse:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
    return HTMLResponse(docs_page(), headers={"content-security-policy": policy})


@cache
def swagger() -> dict[str, Any]:
    """The description in the form of Swagger 2.0."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method] = _operation(each)
    return {
        "swagger": "2.0",
        "info": {
            "title": _TITLE_OF_SPECIFICATION,
            "description": f"{_TITLE}: the interface of LibreTranslate, and others",
            "version": __version__,
        },
        "basePath": "/",
        "paths": paths,
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    place = "formData" if endpoint.method == "post" else "query"
    of_path = [
        {"name": part[1:-1], "in": "path", "required": True, "type": "string"}
        for part in endpoint.path.split("/")
        if part.startswith("{")
    ]
    has_file = any(field.kind == "file" for field in endpoint.fields)
    operation: dict[str, Any] = {
        "tags": [endpoint.group],
        "summary": endpoint.meaning,
        "parameters": [*of_path, *(_parameter(field, place) for field in endpoint.fields)],
        "responses": {
            "200": {"description": endpoint.answer},
            "400": {"description": "The request is wrong"},
            "403": {"description": "The key is missing or wrong"},
            "413": {"description": "The request or its file is too large"},
            "429": {"description": "Too many requests are waiting"},
        },
    }
    if place == "formData":
        forms = ["application/x-www-form-urlencoded", "application/json"]
        operation["consumes"] = ["multipart/form-data"] if has_file else forms
    return operation


def _parameter(field: Field, place: str) -> dict[str, Any]:
    parameter: dict[str, Any] = {
        "name": field.name,
        "in": place,
        "required": field.is_required,
        "type": field.kind,
        "description": field.meaning,
    }
    if field.kind == "array":
        parameter |= {"items": {"type": "string"}, "collectionFormat": "multi"}
    return parameter


@cache
def docs_page() -> str:
    """The description as a page of HTML."""
    groups = [
        f"<h2>{escape(group)}</h2>" + "".join(map(_section, of_group))
        for group, of_group in groupby(ENDPOINTS, lambda each: each.group)
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_TITLE}: interfaces</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_TITLE}: interfaces</h1><p>Parameters come as JSON, as a form or in the query string. "
        'For programs: <a href="/spec">/spec</a> (Swagger 2.0). <a href="/">The page</a></p>'
        f"{''.join(groups)}</body></html>"
    )


def _section(endpoint: Endpoint) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(field.name)}</code></td><td>{'yes' if field.is_required else 'no'}</td>"
        f"<td>{escape(field.meaning)}</td></tr>"
        for field in endpoint.fields
    )
    head = '<tr><th scope="col">Parameter</th><th scope="col">Required</th><th scope="col">Meaning</th></tr>'
    table = f"<table>{head}{rows}</table>" if rows else ""
    return (
        f"<h3><code>{endpoint.method.upper()} {escape(endpoint.path)}</code></h3>"
        f"<p>{escape(endpoint.meaning)}</p>{table}<p>Answer: {escape(endpoint.answer)}</p>"
    )
