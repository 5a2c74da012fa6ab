"""ApiVersions (key 18), versions 0 to 4: which APIs are served in which versions, and the features (KIP-35, KIP-511,
KIP-584).

A request of another version gets UNSUPPORTED_VERSION in the layout of version 0, with the entry for ApiVersions alone,
so that the client can ask again.
"""

from __future__ import annotations

from sys import intern

from pykafkad import handlers
from pykafkad.cluster import features
from pykafkad.errors import INVALID_REQUEST, UNSUPPORTED_VERSION
from pykafkad.hot.wire import frame
from pykafkad.messages import ApiVersionsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers import Api
    from pykafkad.handlers.broker import Broker
    from pykafkad.hot.wire import Range
    from pykafkad.messages import ApiVersionsRequest


API_VERSIONS = 18

ApiVersion = ApiVersionsResponse.ApiVersion
SupportedFeature = ApiVersionsResponse.SupportedFeatureKey
FinalizedFeature = ApiVersionsResponse.FinalizedFeatureKey

LETTERS_AND_DIGITS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
INSIDE_A_NAME = LETTERS_AND_DIGITS | {"-", "."}

SOFTWARE_MAX = 1_000  # names of client software that are shared between connections
SOFTWARE_CHARACTERS = 255  # kept of each software name and version

_rows: list[ApiVersion] = []
_rows_of: list[dict[int, Api]] = []
_software: dict[tuple[str, str], tuple[str, str]] = {}

SOFTWARE_SINCE = 3
LEVEL_ZERO_SINCE = 4

needs = ()  # what a client asks before it says who it is


def handle(broker: Broker, request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    version = context.version
    if version >= SOFTWARE_SINCE and not (
        is_software_name(request.client_software_name) and is_software_name(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=INVALID_REQUEST)
    if version >= SOFTWARE_SINCE:
        software = shared_software(request.client_software_name, request.client_software_version)
        state = broker.state_of(context.connection)
        state.software, state.client_id = software, intern(context.client_id[:SOFTWARE_CHARACTERS])
    image = broker.image
    return ApiVersionsResponse(
        api_keys=rows(broker.apis),
        supported_features=[
            SupportedFeature(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in image.supported_features.items()
            # Clients that use version 3 or older reject a lowest feature level of 0 (KAFKA-17011).
            if name not in features.NOT_SERVED and (version >= LEVEL_ZERO_SINCE or lowest > 0)
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.finalized_features.items()
            if name not in features.NOT_SERVED
        ],
    )


def rows(apis: dict[int, Api]) -> list[ApiVersion]:
    """Of the APIs of this broker: there is one in a process, so they are made once."""
    if not _rows or _rows_of[0] is not apis:
        _rows_of[:], _rows[:] = [apis], [row(api) for api in apis.values() if api.is_advertised]
    return _rows


def row(api: Api) -> ApiVersion:
    return ApiVersion(api_key=api.key, min_version=api.listed_since, max_version=api.versions[1])


def is_software_name(text: str) -> bool:
    """Whether it is letters and digits, with dashes and dots between them; Kafka checks software versions by the same
    rule."""
    return (
        bool(text)
        and INSIDE_A_NAME.issuperset(text)
        and text[0] in LETTERS_AND_DIGITS
        and text[-1] in LETTERS_AND_DIGITS
    )


def shared_software(name: str, version: str) -> tuple[str, str]:
    """One object for all connections of the same client software."""
    if len(_software) >= SOFTWARE_MAX:
        _software.clear()
    software = name[:SOFTWARE_CHARACTERS], version[:SOFTWARE_CHARACTERS]
    return _software.setdefault(software, software)


def refusal(correlation_id: int) -> bytes | list[bytes | Range]:
    response = ApiVersionsResponse(
        error_code=UNSUPPORTED_VERSION,
        api_keys=[row(handlers.APIS[API_VERSIONS])],
    )
    return frame(response, 0, correlation_id, False)
