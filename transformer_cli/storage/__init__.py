"""Files that survive crashes: atomic writes, checksums, safetensors, JSON Lines, locks."""

from transformer_cli.storage.filesystem import REAL as REAL
from transformer_cli.storage.filesystem import FileSystem as FileSystem
from transformer_cli.storage.filesystem import errors_explained as errors_explained
from transformer_cli.storage.growing_files import append_json_line as append_json_line
from transformer_cli.storage.growing_files import cut_json_lines as cut_json_lines
from transformer_cli.storage.growing_files import keep_json_lines as keep_json_lines
from transformer_cli.storage.growing_files import read_json_lines as read_json_lines
from transformer_cli.storage.manifest import MANIFEST_NAME as MANIFEST_NAME
from transformer_cli.storage.manifest import DamagedError as DamagedError
from transformer_cli.storage.manifest import Manifest as Manifest
from transformer_cli.storage.manifest import open_sealed as open_sealed
from transformer_cli.storage.writing import Content as Content
from transformer_cli.storage.writing import KnownFolder as KnownFolder
from transformer_cli.storage.writing import RunLock as RunLock
from transformer_cli.storage.writing import make_folders as make_folders
from transformer_cli.storage.writing import point_link as point_link
from transformer_cli.storage.writing import remove as remove
from transformer_cli.storage.writing import replace_file as replace_file
from transformer_cli.storage.writing import require_name as require_name
from transformer_cli.storage.writing import require_name_in_utf8 as require_name_in_utf8
from transformer_cli.storage.writing import require_replaceable_folder as require_replaceable_folder
from transformer_cli.storage.writing import require_space as require_space
from transformer_cli.storage.writing import staged_file as staged_file
from transformer_cli.storage.writing import staged_folder as staged_folder
from transformer_cli.storage.writing import sweep as sweep
from transformer_cli.storage.writing import write_folder as write_folder
