"""A subset of DeepL's interface, version 2: translations of texts and documents, languages, usage, and glossaries.

It is described at https://developers.deepl.com/docs.
"""

import asyncio
import csv
import hmac
import io
import re
import secrets
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transformer_cli.config import Direction
from transformer_cli.decoding import Glossary
from transformer_cli.decoding.glossary import RequiredTerms
from transformer_cli.decoding.glossary_files import read_glossary
from transformer_cli.extensions.documents.formats import format_of
from transformer_cli.extensions.documents.html import BLOCKS
from transformer_cli.extensions.documents.tagged_xml import TagRules
from transformer_cli.extensions.serving.batcher import Job
from transformer_cli.extensions.serving.files import (
    KEPT_SECONDS,
    FileProgress,
    FileTranslations,
    FinishedFile,
    SentFile,
    download_response,
)
from transformer_cli.extensions.serving.languages import AUTO
from transformer_cli.extensions.serving.libretranslate import shown_name
from transformer_cli.extensions.serving.limits import RefusedRequest, bad_request, try_later
from transformer_cli.extensions.serving.request_values import (
    ApiKeys,
    RequestValues,
    key_in_header,
    read_values,
)
from transformer_cli.extensions.serving.service import TranslationService, refusal_of
from transformer_cli.extensions.serving.texts import TextOptions, available_formats
from transformer_cli.process.errors import UsageError
from transformer_cli.text.languages import primary_language


@dataclass(frozen=True, slots=True)
class ServedGlossary:
    """A glossary that requests can name."""

    unique: str
    """By which requests name it."""
    name: str
    """For people."""
    languages: Direction
    terms: Glossary
    created_at: datetime
    owner: bytes | None = None
    """As of `ApiKeys.owner`: only its clients see it. None: all clients do."""

    def as_json(self) -> dict[str, Any]:
        """Its facts in the form of DeepL."""
        return {
            "glossary_id": self.unique,
            "name": self.name,
            "ready": True,
            "source_lang": self.languages.source,
            "target_lang": self.languages.target,
            "creation_time": self.created_at.isoformat(),
            "entry_count": len(self.terms.entries),
        }

    def as_json_of_v3(self) -> dict[str, Any]:
        """Its facts in the form of version 3 of DeepL's interface, where a glossary has a dictionary for each direction."""
        facts = self.as_json()
        dictionary = {name: facts.pop(name) for name in ("source_lang", "target_lang", "entry_count")}
        return {**facts, "dictionaries": [dictionary]}

    def entries(self) -> str:
        """Its terms, one pair on each line, with a tab between them."""
        return "\n".join(f"{entry.source}\t{entry.target}" for entry in self.terms.entries)


Glossaries = dict[str, ServedGlossary]


def read_glossaries(given: Sequence[str], encoding: str | None = None) -> Glossaries:
    """The glossaries of options such as en-it=terms.tsv; the name of each is that of its file, without the ending.

    Args:
        given: the options.
        encoding: of files that are not UTF-8; None: it is found out.

    Raises:
        UsageError: an option has another form, or two files have the same name.
        MissingInputError, DataError: as of `read_glossary`.
    """
    found: Glossaries = {}
    for option in given:
        languages, equals, file = option.partition("=")
        source, dash, target = languages.partition("-")
        if not (equals and dash and source and target and file):
            raise UsageError(
                f"--glossary {option}: the languages and a file are expected",
                hint="such as --glossary en-it=terms.tsv",
            )
        path = Path(file)
        terms = read_glossary(path, encoding)
        if path.stem in found:
            raise UsageError(f"--glossary: two files have the name {path.stem}")
        created_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        direction = Direction(source, target)
        found[path.stem] = ServedGlossary(path.stem, path.stem, direction, terms, created_at)
    return found


def sent_terms(entries: str, entries_format: str) -> Glossary:
    """The terms of a glossary that a client sends.

    Args:
        entries: a source term and its target term on each line; in csv, perhaps also their languages.
        entries_format: tsv or csv.

    Raises:
        RefusedRequest: there are none, or some cannot be read.
    """
    lines = io.StringIO(entries, newline="")
    if entries_format == "csv":
        rows = csv.reader(lines, strict=True)
    else:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    terms: dict[str, str] = {}
    try:
        for row in rows:
            columns = [column.strip() for column in row]
            if not any(columns):
                continue
            place = f"Line {rows.line_num} of 'entries'"
            is_too_long = len(columns) > (4 if entries_format == "csv" else 2)
            if len(columns) < 2 or not all(columns[:2]) or is_too_long:
                raise bad_request(f"{place} is not a source term and a target term.")
            source, target = columns[:2]
            if _CONTROL.search(source + target):
                raise bad_request(f"{place}: a term has a line break or a control character.")
            if source in terms:
                raise bad_request(f"{place}: the source term stands there twice.")
            terms[source] = target
    except csv.Error as error:
        raise bad_request(f"Line {rows.line_num} of 'entries' cannot be read: {error}.") from None
    if not terms:
        raise bad_request("Parameter 'entries' holds no terms.")
    if len(terms) > _MAX_TERMS_OF_ONE:
        raise bad_request(f"Too many terms: {len(terms)}, but at most {_MAX_TERMS_OF_ONE} are possible.")
    return Glossary.of(terms)


class _SentDocument(NamedTuple):
    """A document that a client has sent, until it is forgotten."""

    key: str
    """Only a client that knows it gets the translation."""
    began_at: float
    progress: FileProgress
    work: "asyncio.Task[FinishedFile | RefusedRequest]"

    def as_json(self) -> dict[str, Any]:
        """How far it is, in the form of DeepL."""
        if not self.work.done():
            done, total = self.progress.done, self.progress.total
            if not total:
                return {"status": "queued"}
            seconds = (time.monotonic() - self.began_at) * (total - done) / max(1, done)
            return {"status": "translating", "seconds_remaining": round(seconds)}
        found = self.work.result()
        if isinstance(found, RefusedRequest):
            return {"status": "error", "error_message": found.message}
        return {"status": "done", "billed_characters": found.num_characters, **found.details}


_TAG_LISTS = ("ignore_tags", "splitting_tags", "non_splitting_tags")
_LISTS = frozenset({"text", *_TAG_LISTS})
_MAX_TEXTS = 50
_MAX_DOCUMENTS = 10_000
# Of all clients, beside those with which the server was started: they stay in memory until its end.
_MAX_GLOSSARIES = 1000
_MAX_TERMS = 100_000
_MAX_TERMS_OF_ONE = 10_000
_MAX_CHARACTERS_OF_TERMS = 10_000_000
_MAX_CHARACTERS_OF_NAME = 1024
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# DeepL's clients warn when the count comes near to the limit; this server has none.
_NO_LIMIT = 10**12
_MODEL_TYPES = ("", "latency_optimized", "quality_optimized")
# They would change the translations.
_UNKNOWN = ("glossary_ids", "style_id", "custom_instructions", "translation_memory_id")
# In all of them but `nonewlines`, line breaks stay where they are; so 0 reads each line at once.
_SPLITTING = {
    "0": TextOptions(splits_sentences=False),
    "1": TextOptions(),
    "nonewlines": TextOptions(line_breaks="joined"),
    # Some clients offer it beside the three of DeepL.
    "newlines": TextOptions(splits_sentences=False),
}


class DeepLApi:
    """The endpoints of DeepL over the service."""

    def __init__(
        self,
        service: TranslationService,
        keys: ApiKeys,
        glossaries: Glossaries,
        files: FileTranslations,
    ) -> None:
        self._service = service
        self._keys = keys
        self._given_glossaries = glossaries
        self._sent_glossaries: Glossaries = {}
        self._required: dict[str, RequiredTerms] = {}
        self._files = files
        self._documents: OrderedDict[str, _SentDocument] = OrderedDict()

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""
        return [
            Route("/v2/translate", self.translate, methods=["POST"]),
            Route("/v2/document", self.send_document, methods=["POST"]),
            Route("/v2/document/{name}", self.document, methods=["GET", "POST"]),
            Route("/v2/document/{name}/result", self.result, methods=["GET", "POST"]),
            Route("/v2/languages", self.languages, methods=["GET", "POST"]),
            Route("/v2/usage", self.usage, methods=["GET", "POST"]),
            Route("/v2/glossary-language-pairs", self.glossary_pairs, methods=["GET"]),
            Route("/v2/glossaries", self.glossaries, methods=["GET"]),
            Route("/v2/glossaries", self.create_glossary, methods=["POST"]),
            Route("/v2/glossaries/{name}", self.glossary, methods=["GET"]),
            Route("/v2/glossaries/{name}", self.delete_glossary, methods=["DELETE"]),
            Route("/v2/glossaries/{name}/entries", self.entries, methods=["GET"]),
            Route("/v3/glossaries", self.glossaries_of_v3, methods=["GET"]),
            Route("/v3/glossaries", self.create_glossary_of_v3, methods=["POST"]),
            Route("/v3/glossaries/{name}", self.glossary_of_v3, methods=["GET"]),
            Route("/v3/glossaries/{name}", self.delete_glossary, methods=["DELETE"]),
            Route("/v3/glossaries/{name}/entries", self.entries_of_v3, methods=["GET"]),
        ]

    async def translate(self, request: Request) -> JSONResponse:
        """POST /v2/translate: the translation of each text, and the language of the text."""
        values = await self._values(request, _LISTS)
        texts = values.listed("text")
        if not texts or "text" not in values:
            raise bad_request("Parameter 'text' not specified.")
        if len(texts) > _MAX_TEXTS:
            raise bad_request(f"Too many texts: {len(texts)}, but at most {_MAX_TEXTS} are possible.")
        _require(values, "target_lang")
        self._service.check_texts(texts)
        _refuse_unknown(values)
        handling = values.text("tag_handling")
        # A line break of HTML is white space as any other.
        usual = "nonewlines" if handling == "html" else "1"
        options = _SPLITTING.get(values.word("split_sentences", usual))
        if options is None:
            raise bad_request(f"Value for 'split_sentences' not supported; {', '.join(_SPLITTING)} are.")
        source, target, terms = await self._wanted(request, values)
        sources = await self._service.source_languages(texts, source, target)
        placed = list(zip(texts, [one.language for one in sources], strict=True))
        options = replace(
            options,
            terms=terms,
            is_html=handling == "html",
            kept_elements=_tag_names_of_html(values, "ignore_tags"),
            tag_rules=_tag_rules(values) if handling == "xml" else None,
        )
        translated = await self._service.translate_between(request, placed, target, options)
        # There is one kind of model here, whichever a client prefers.
        wanted = values.text("model_type")
        has_details = values.switch("details")
        used_model = {"model_type_used": wanted.removeprefix("prefer_")} if wanted else {}
        return JSONResponse(
            {
                "translations": [
                    {
                        "detected_source_language": deepl_code(language),
                        "text": one.text,
                        "billed_characters": len(text),
                        **used_model,
                        **(one.details if has_details else {}),
                    }
                    for one, (text, language) in zip(translated, placed, strict=True)
                ]
            }
        )

    async def send_document(self, request: Request) -> JSONResponse:
        """POST /v2/document: begin to translate a document; the answer has its id and its key."""
        values = await self._values(request)
        file = values.file("file")
        _require(values, "target_lang")
        _refuse_unknown(values)
        file_format = format_of(PurePath(values.text("filename") or file.name))
        if file_format is None or file_format not in available_formats():
            raise bad_request("Invalid file: its kind is not supported.")
        wanted = values.text("output_format").lower()
        if wanted and f".{wanted}" not in file_format.endings:
            raise bad_request("Value for 'output_format' not supported: it must be that of the file.")
        source, target, terms = await self._wanted(request, values)
        sent = SentFile(
            values.text("filename") or file.name,
            file.data,
            source,
            target,
            terms=terms,
            is_refused_unchanged=True,
            has_details=values.switch("details"),
        )
        job = self._service.enter(self._service.limits.file_deadline_seconds)
        progress = FileProgress()
        work = asyncio.create_task(self._translated(job, sent, progress))
        name, key = secrets.token_hex(16).upper(), secrets.token_hex(32).upper()
        self._documents[name] = _SentDocument(key, time.monotonic(), progress, work)
        self._forget_documents()
        return JSONResponse({"document_id": name, "document_key": key})

    async def document(self, request: Request) -> JSONResponse:
        """POST /v2/document/ID: how far the translation of a document is."""
        name, found = await self._sent_document(request)
        return JSONResponse({"document_id": name, **found.as_json()})

    async def result(self, request: Request) -> Response:
        """POST /v2/document/ID/result: the translated document; 503 before it is ready."""
        _, sent = await self._sent_document(request)
        if not sent.work.done():
            raise try_later(503, "The document is not translated yet.")
        found = sent.work.result()
        if isinstance(found, RefusedRequest):
            raise bad_request(found.message)
        data = self._files.kept.get(found.unique)
        if data is None:
            raise RefusedRequest(404, "Document not found.")
        return download_response(found.unique, data)

    async def _translated(self, job: Job, sent: SentFile, progress: FileProgress) -> FinishedFile | RefusedRequest:
        try:
            with self._service.counting_file():
                return await self._files.translated(None, job, sent, progress)
        except Exception as error:
            return _never_raised(refusal_of(error))
        finally:
            self._service.leave(job)

    async def _sent_document(self, request: Request) -> tuple[str, _SentDocument]:
        """The document of an address, and its id, if the request has its key."""
        values = await self._values(request)
        self._forget_documents()
        name = request.path_params["name"]
        found = self._documents.get(name)
        key = values.text("document_key").encode()
        if found is None or not hmac.compare_digest(found.key.encode(), key):
            raise RefusedRequest(404, "Document not found.")
        return name, found

    def _forget_documents(self) -> None:
        """Forget documents that are translated, when they are old or too many."""
        longest = KEPT_SECONDS + self._service.limits.file_deadline_seconds
        last_forgotten = time.monotonic() - longest
        num_too_many = len(self._documents) - _MAX_DOCUMENTS
        forgotten: list[str] = []
        for name, document in self._documents.items():
            if document.began_at >= last_forgotten and len(forgotten) >= num_too_many:
                break
            if document.work.done():
                forgotten.append(name)
        for name in forgotten:
            del self._documents[name]

    async def languages(self, request: Request) -> JSONResponse:
        """GET /v2/languages: the languages of texts (type source), or of translations (type target)."""
        values = await self._values(request)
        kind = values.text("type", "source") or "source"
        if kind not in ("source", "target"):
            raise bad_request("Value for 'type' not supported.")
        runs = self._service.runs
        listed = runs.sources if kind == "source" else runs.targets
        more: dict[str, bool] = {} if kind == "source" else {"supports_formality": False}
        return JSONResponse([{"language": deepl_code(one), "name": shown_name(one), **more} for one in listed])

    async def usage(self, request: Request) -> JSONResponse:
        """GET /v2/usage: the number of characters since the start of the server."""
        await self._values(request)
        count = self._service.num_characters
        return JSONResponse({"character_count": count, "character_limit": _NO_LIMIT})

    async def glossary_pairs(self, request: Request) -> JSONResponse:
        """GET /v2/glossary-language-pairs: the directions in which the server translates."""
        await self._values(request)
        pairs = [
            {"source_lang": deepl_code(source).lower(), "target_lang": deepl_code(target).lower()}
            for source, target in self._service.runs.directions
        ]
        return JSONResponse({"supported_languages": pairs})

    async def glossaries(self, request: Request) -> JSONResponse:
        """GET /v2/glossaries: the glossaries with which the server was started, and those that the client has sent."""
        listed = self._glossaries_of(self._owner(request, await self._values(request)))
        return JSONResponse({"glossaries": [each.as_json() for each in listed.values()]})

    async def create_glossary(self, request: Request) -> JSONResponse:
        """POST /v2/glossaries: a new glossary; it stays until the server ends."""
        values = await self._values(request)
        return JSONResponse((await self._created(request, values, values)).as_json(), 201)

    async def create_glossary_of_v3(self, request: Request) -> JSONResponse:
        """POST /v3/glossaries: a new glossary of one direction, as a model has."""
        values = await self._values(request)
        _require(values, "name")
        dictionaries = values.objects("dictionaries")
        if not dictionaries:
            raise bad_request("Parameter 'dictionaries' not specified.")
        if len(dictionaries) > 1:
            raise bad_request("Value for 'dictionaries' not supported; a glossary has one dictionary here.")
        return JSONResponse((await self._created(request, values, dictionaries[0])).as_json_of_v3(), 201)

    async def _created(self, request: Request, values: RequestValues, dictionary: RequestValues) -> ServedGlossary:
        """A new glossary with the name among `values` and the languages and terms of a dictionary."""
        _require(values, "name")
        _require(dictionary, "source_lang", "target_lang", "entries")
        given_name = values.text("name")
        if len(given_name) > _MAX_CHARACTERS_OF_NAME:
            raise bad_request(
                f"Parameter 'name' has {len(given_name)} characters, but at most {_MAX_CHARACTERS_OF_NAME} are possible."
            )
        entries_format = dictionary.text("entries_format") or "tsv"
        if entries_format not in ("tsv", "csv"):
            raise bad_request("Value for 'entries_format' not supported; tsv and csv are.")
        languages = Direction(self._language(dictionary, "source_lang"), self._language(dictionary, "target_lang"))
        terms = sent_terms(dictionary.text("entries"), entries_format)
        self._check_room(terms)
        unique = str(uuid.uuid4())
        owner = self._owner(request, values)
        created = ServedGlossary(unique, given_name, languages, terms, datetime.now(UTC), owner)
        # A term that the model cannot write is refused now, and not with each text.
        required = await self._made_ready(request, created)
        # Others may have been stored in the meantime.
        self._check_room(terms)
        self._sent_glossaries[unique] = created
        self._required[unique] = required
        return created

    async def delete_glossary(self, request: Request) -> Response:
        """DELETE /v2/glossaries/ID: forget a glossary that a client has sent."""
        found = await self._glossary_of_path(request)
        if found.unique in self._given_glossaries:
            raise bad_request("The server was started with this glossary, so it cannot be deleted.")
        del self._sent_glossaries[found.unique]
        self._required.pop(found.unique, None)
        return Response(status_code=204)

    async def glossary(self, request: Request) -> JSONResponse:
        """GET /v2/glossaries/ID: one of them."""
        return JSONResponse((await self._glossary_of_path(request)).as_json())

    async def entries(self, request: Request) -> Response:
        """GET /v2/glossaries/ID/entries: its terms, one pair on each line, with a tab between them."""
        found = await self._glossary_of_path(request)
        return Response(found.entries(), media_type="text/tab-separated-values")

    async def glossaries_of_v3(self, request: Request) -> JSONResponse:
        """GET /v3/glossaries: the same as /v2/glossaries in the form of version 3."""
        listed = self._glossaries_of(self._owner(request, await self._values(request)))
        return JSONResponse({"glossaries": [each.as_json_of_v3() for each in listed.values()]})

    async def glossary_of_v3(self, request: Request) -> JSONResponse:
        """GET /v3/glossaries/ID: one of them."""
        return JSONResponse((await self._glossary_of_path(request)).as_json_of_v3())

    async def entries_of_v3(self, request: Request) -> JSONResponse:
        """GET /v3/glossaries/ID/entries: the terms of its dictionary, if it is of the languages that the request names."""
        values = await self._values(request)
        _require(values, "source_lang", "target_lang")
        found = await self._glossary_of_path(request)
        wanted = Direction(self._language(values, "source_lang"), self._language(values, "target_lang"))
        if wanted != found.languages:
            raise RefusedRequest(404, "The glossary has no dictionary of these languages.")
        [dictionary] = found.as_json_of_v3()["dictionaries"]
        del dictionary["entry_count"]
        return JSONResponse({"dictionaries": [{**dictionary, "entries": found.entries(), "entries_format": "tsv"}]})

    def _check_room(self, terms: Glossary) -> None:
        """Refuse a further glossary if those of clients would take too much memory."""
        all_terms = [*(each.terms for each in self._sent_glossaries.values()), terms]
        entries = [entry for each in all_terms for entry in each.entries]
        num_characters = sum(len(entry.source) + len(entry.target) for entry in entries)
        if len(all_terms) > _MAX_GLOSSARIES or len(entries) > _MAX_TERMS or num_characters > _MAX_CHARACTERS_OF_TERMS:
            raise RefusedRequest(456, "Quota exceeded: delete a glossary.")

    def _glossaries_of(self, owner: bytes) -> Glossaries:
        """The glossaries that a client may see: those of the server, and its own."""
        own = {name: each for name, each in self._sent_glossaries.items() if each.owner == owner}
        return {**self._given_glossaries, **own}

    async def _glossary_of_path(self, request: Request) -> ServedGlossary:
        values = await self._values(request)
        return self._glossary_named(request.path_params["name"], self._owner(request, values))

    def _glossary_named(self, name: str, owner: bytes) -> ServedGlossary:
        found = self._given_glossaries.get(name) or self._sent_glossaries.get(name)
        if found is None or found.owner not in (None, owner):
            raise RefusedRequest(404, "Glossary not found.")
        return found

    async def _values(self, request: Request, lists: frozenset[str] = frozenset()) -> RequestValues:
        """The parameters of a request that has a valid key."""
        values = await read_values(request, lists=lists)
        message = "Authorization failed: the API key is missing or wrong."
        await self._keys.check(request, _key(request, values), RefusedRequest(403, message))
        return values

    def _owner(self, request: Request, values: RequestValues) -> bytes:
        """To whom glossaries belong that come with this request."""
        return self._keys.owner(_key(request, values))

    def _language(self, values: RequestValues, name: str) -> str:
        try:
            return self._service.language(values.text(name))
        except RefusedRequest as refusal:
            if refusal.status != 400:
                raise
            raise bad_request(f"Value for '{name}' not supported.") from None

    async def _wanted(self, request: Request, values: RequestValues) -> tuple[str, str, RequiredTerms | None]:
        """The languages of source (or auto) and target, and the terms of the glossary that a request names."""
        target = self._language(values, "target_lang")
        source = self._language(values, "source_lang") if values.text("source_lang") else AUTO
        name = values.text("glossary_id")
        if not name:
            return source, target, None
        found = self._glossary_named(name, self._owner(request, values))
        if source == AUTO:
            raise bad_request("Parameter 'source_lang' must be specified with 'glossary_id'.")
        if found.languages != (source, target):
            raise bad_request(f"The glossary is for {found.languages}.")
        # Those of clients are made ready before they can be named.
        if found.unique not in self._required:
            self._required[found.unique] = await self._made_ready(request, found)
        return source, target, self._required[found.unique]

    async def _made_ready(self, request: Request, glossary: ServedGlossary) -> RequiredTerms:
        """The terms of a glossary for the model of its direction; a large glossary takes seconds."""
        translator = self._service.direction(*glossary.languages).translator

        def work(job: Job) -> RequiredTerms:
            terms = translator.with_glossary(glossary.terms).pipeline.glossary
            assert terms is not None
            return terms

        async with self._service.admitted() as job:
            return await self._service.run(request, job, work)


def _key(request: Request, values: RequestValues) -> str:
    return key_in_header(request.headers.get("authorization", "")) or values.text("auth_key")


def _require(values: RequestValues, *names: str) -> None:
    for name in names:
        if not values.text(name):
            raise bad_request(f"Parameter '{name}' not specified.")


def _never_raised(refusal: RefusedRequest) -> RefusedRequest:
    """The same refusal to keep for minutes; one that was raised keeps all frames of the work, and the upload in them."""
    return RefusedRequest(refusal.status, refusal.message, headers=refusal.headers)


def deepl_code(language: str) -> str:
    """The code of a language as DeepL writes it: in capitals, without a script or region."""
    return primary_language(language).upper()


def _refuse_unknown(values: RequestValues) -> None:
    """Refuse what would change the translations, and what this server does not do."""
    formality = values.text("formality")
    if formality and not formality.startswith(("default", "prefer_")):
        raise bad_request("Value for 'formality' not supported.")
    if values.text("model_type").removeprefix("prefer_") not in _MODEL_TYPES:
        raise bad_request("Value for 'model_type' not supported.")
    for name in _UNKNOWN:
        if values.texts(name):
            raise bad_request(f"Parameter '{name}' is not supported.")
    handling = values.text("tag_handling")
    if handling not in ("", "plain", "html", "xml"):
        raise bad_request("Value for 'tag_handling' not supported; html, xml and plain are.")
    # `outline_detection` has no effect on other texts. DeepL's own command line sends it with every text.
    for name in _TAG_LISTS:
        if name in values and handling != "xml" and not _changes_nothing(values, name):
            raise bad_request(f"Parameter '{name}' is only supported with tag_handling=xml.")


def _changes_nothing(values: RequestValues, parameter: str) -> bool:
    """Whether a list of tags changes nothing in texts that are not read as XML: HTML follows it anyway, or no text has such a tag."""
    names = _tag_names_of_html(values, parameter)
    if values.text("tag_handling") == "html":
        # The blocks of HTML always end a sentence.
        names -= {"ignore_tags": names, "splitting_tags": BLOCKS}.get(parameter, frozenset())
    if not names or "text" not in values:
        return not names
    tag = re.compile(rf"</?(?:{'|'.join(map(re.escape, names))})(?![\w:.-])", re.IGNORECASE)
    return not any(map(tag.search, values.listed("text")))


def _tag_names_of_html(values: RequestValues, parameter: str) -> frozenset[str]:
    return frozenset(map(str.lower, _tag_names(values, parameter)))


def _tag_rules(values: RequestValues) -> TagRules:
    """The rules for the tags of XML; each list has names, or names with commas between them."""
    ignored, splitting, non_splitting = (_tag_names(values, name) for name in _TAG_LISTS)
    detects_outline = values.switch("outline_detection", True)
    return TagRules(ignored, splitting, non_splitting, detects_outline)


def _tag_names(values: RequestValues, parameter: str) -> frozenset[str]:
    names = (name.strip() for each in values.listed(parameter) for name in each.split(","))
    return frozenset(name for name in names if name)
