"""cloud_events.py ADDRESS: what the CloudEvents library for Python publishes comes back equal, attribute by attribute."""

import http.client
import json
import sys
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

from cloudevents.core.bindings.http import HTTPMessage, from_structured, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

ADDRESS = urlsplit(sys.argv[1])
FORMAT = JSONFormat()
TIME = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=45)))
EVERY_BYTE = bytes(range(256))


def connection():
    # Adds no content type of its own, which urllib would.
    return http.client.HTTPConnection(ADDRESS.hostname, ADDRESS.port, timeout=20)


def publish(message, status):
    server = connection()
    server.request("POST", "/v1/events", message.body, message.headers)
    answer = server.getresponse()
    body = json.loads(answer.read())
    server.close()
    assert answer.status == status, (answer.status, body)
    return body


def frames(after):
    """The frames of a stream: its fields, data joined."""
    server = connection()
    server.request("GET", "/v1/events", headers={"Last-Event-ID": str(after), "Accept": "text/event-stream"})
    stream = server.getresponse()
    assert (stream.status, stream.getheader("Content-Type")) == (200, "text/event-stream")
    fields, data = {}, []
    try:
        while line := stream.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name:
                fields[name] = value
            elif line == b"\n":
                if data:
                    yield fields, "\n".join(data)
                fields, data = {}, []
    finally:
        server.close()


def event(name, data, **attributes):
    attributes = {"id": str(name), "source": "/python", "type": "com.example.test", "specversion": "1.0"} | attributes
    return CloudEvent(attributes, data)


def read_back(text):
    return from_structured(HTTPMessage({"content-type": FORMAT.get_content_type()}, text.encode()), FORMAT)


FULL = {
    "subject": 'Stra\u00dfe "1" / 100 % \u20ac \U0001f30a',
    "time": TIME,
    "dataschema": "https://example.com/schema#1",
    "comexampleext1": "a, b; c=\"d\"",
    "z9": "x\\y",
}
OBJECT = {"price": 1.5, "big": 2**70, "text": "h\u00e4 \U0001f30a\n\r\u2028", "none": None, "list": [[], {}, False]}

STRUCTURED = [
    (OBJECT, FULL | {"datacontenttype": "application/json"}),
    (OBJECT, FULL | {"number": -7, "flag": True}),
    (EVERY_BYTE, FULL | {"datacontenttype": "application/octet-stream"}),
    ("h\u00e4\r\nline\n\n", FULL | {"datacontenttype": "text/plain"}),
    (None, FULL),
    ([1, [2]], {}),
    (0, {}),
    (False, {}),
    ("", {}),
]
# The library writes other JSON than objects without its quotes in this mode.
BINARY = [
    (OBJECT, FULL | {"datacontenttype": "application/json"}),
    (OBJECT, FULL | {"datacontenttype": "application/vnd.example+json; charset=utf-8"}),
    (OBJECT, FULL),
    (EVERY_BYTE, FULL | {"datacontenttype": "application/octet-stream"}),
    ("h\u00e4\r\nline\n\n", FULL | {"datacontenttype": "text/plain; charset=utf-8"}),
    (None, FULL),
    (None, {}),
]

published = []
for number, (mode, (data, attributes)) in enumerate(
    [(to_structured, case) for case in STRUCTURED] + [(to_binary, case) for case in BINARY], 1
):
    sent = event(number, data, **attributes)
    assert publish(mode(sent, FORMAT), 201) == {"sequence": number}
    published.append(sent)

again = publish(to_structured(published[0], FORMAT), 200)
assert again == {"sequence": 1}, again
together = [event(f"b{number}", number) for number in range(3)]
bodies = [to_structured(one, FORMAT).body for one in together]
batch = HTTPMessage({"content-type": "application/cloudevents-batch+json"}, b"[" + b",".join(bodies) + b"]")
last = len(published)
assert publish(batch, 201) == {"sequences": [last + 1, last + 2, last + 3]}
published += together

for sequence, (sent, (fields, text)) in enumerate(zip(published, frames(0)), 1):
    assert (fields["id"], fields["event"]) == (str(sequence), "com.example.test"), fields
    found = read_back(text)
    assert found.get_attributes() == sent.get_attributes(), (found.get_attributes(), sent.get_attributes())
    assert found.get_time() == sent.get_time() and type(found.get_data()) is type(sent.get_data())
    assert found.get_data() == sent.get_data(), (found.get_data(), sent.get_data())
    if isinstance(sent.get_data(), dict):
        assert found.get_data()["big"] == 2**70 and found.get_data()["list"][2] is False
assert sequence == len(published) == last + 3

# Plain JSON comes back as an event that the library takes, too.
plain = connection()
plain.request("POST", "/v1/events?type=note&source=%2Fdesk", b'{"a": 1}', {"Content-Type": "application/json"})
number = json.loads(plain.getresponse().read())["sequence"]
plain.close()
_, text = next(frames(number - 1))
found = read_back(text)
assert (found.get_source(), found.get_type(), found.get_id()) == ("/desk", "note", str(number))
assert found.get_data() == {"a": 1} and found.get_time().tzinfo is not None
print(f"Python, cloudevents: {len(published) + 1} events came back as they were")
