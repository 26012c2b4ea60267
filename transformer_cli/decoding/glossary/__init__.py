"""Glossaries: source terms, found in sentences, and the target terms that must stand in the translations."""

from transformer_cli.decoding.glossary.entries import Glossary as Glossary
from transformer_cli.decoding.glossary.entries import GlossaryEntry as GlossaryEntry
from transformer_cli.decoding.glossary.glossary_file import read_glossary as read_glossary
from transformer_cli.decoding.glossary.required_terms import AppliedTerm as AppliedTerm
from transformer_cli.decoding.glossary.required_terms import RequiredTerm as RequiredTerm
from transformer_cli.decoding.glossary.required_terms import RequiredTerms as RequiredTerms
from transformer_cli.decoding.glossary.required_terms import applied_terms as applied_terms
from transformer_cli.decoding.glossary.required_terms import texts_of_slots as texts_of_slots
from transformer_cli.decoding.glossary.required_terms import with_terms as with_terms
