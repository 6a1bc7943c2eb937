// Cases of what needs no page: a function that is given the modules, and gives a list of what failed.
async ({ sse, json, metrics }) => {
  const failures = [];
  let held = 0;
  const same = (what, found, expected) => {
    held += 1;
    if (JSON.stringify(found) !== JSON.stringify(expected)) {
      failures.push(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
    }
  };

  // However the bytes are cut, the messages are the same.
  const message = (data, id = null, type = 'message') => ({ id, type, data });
  const streams = [
    ['line feeds', 'data: a\n\ndata: b\n\n', [message('a'), message('b')]],
    ['returns', 'data: a\r\rdata: b\r\r', [message('a'), message('b')]],
    ['both', 'data: a\r\n\r\ndata: b\r\n\r\n', [message('a'), message('b')]],
    ['both within a message', 'id: 7\r\ndata: a\r\ndata: b\r\n\r\n', [message('a\nb', '7')]],
    ['a mixture', 'data: a\r\n\ndata: b\r\r\ndata: c\n\r', [message('a'), message('b'), message('c')]],
    ['several lines', 'data: a\ndata:\ndata:  b\n\n', [message('a\n\n b')]],
    ['all fields', 'id: 7\nevent: t.x\ndata: {"a":1}\n\n', [message('{"a":1}', '7', 't.x')]],
    ['an id is its own message’s', 'id: 7\ndata: a\n\ndata: b\n\n', [message('a', '7'), message('b')]],
    ['comments', ':\n\n: hello\ndata: a\n:data: b\n\n', [message('a')]],
    ['no space', 'data:a\nid:1\n\n', [message('a', '1')]],
    ['no colon', 'data\n\n', [message('')]],
    ['no data', 'id: 1\nevent: t\n\n', []],
    ['no colon twice', 'data\ndata\n\n', [message('\n')]],
    ['a colon in the value', 'data: a: b\n\n', [message('a: b')]],
    ['unknown fields', 'date: x\nDATA: y\ndata: a\n\n', [message('a')]],
    ['a type without data', 'event: t\n\ndata: a\n\n', [message('a')]],
    ['an id with a zero', 'id: 1\0\ndata: a\n\n', [message('a')]],
    ['a byte order mark', '\ufeffdata: a\n\n', [message('a')]],
    ['characters of two, three and four bytes', 'data: é€🌊\nid: ü\n\n', [message('é€🌊', 'ü')]],
    ['separators that end no line', 'data: a\u2028b\u0085c\n\n', [message('a\u2028b\u0085c')]],
    ['an end in the middle', 'data: a\n\ndata: b\n', [message('a')]],
  ];
  for (const [what, text, expected] of streams) {
    const bytes = new TextEncoder().encode(text);
    const parse = (...cuts) => {
      const parser = new sse.SseParser();
      const ends = [...cuts, bytes.length];
      return ends.flatMap((end, at) => parser.push(bytes.slice(ends[at - 1] ?? 0, end)));
    };
    for (let first = 0; first <= bytes.length; first += 1) {
      for (let second = first; second <= bytes.length; second += 1) {
        same(`${what}, cut at ${first} and ${second}`, parse(first, second), expected);
      }
    }
    same(`${what}, byte by byte`, parse(...bytes.keys()), expected);
  }
  const parser = new sse.SseParser();
  parser.push(new TextEncoder().encode('retry: 1500\nretry: 2x\nretry:\n'));
  same('the wait', parser.retry, 1500);

  // JSON as it was written.
  const members = (text) => [...json.members(text)];
  same('members', members('{ "a" : 1.50, "b":{"c":[1,{"a":2}]} , "d":"}\\",{" }'), [
    ['a', '1.50'],
    ['b', '{"c":[1,{"a":2}]}'],
    ['d', '"}\\",{"'],
  ]);
  same('escaped names', members('{"t\\u0079pe":"x","e\\\\":2}'), [['type', '"x"'], ['e\\', '2']]);
  same('the last counts', members('{"a":1,"a":2}'), [['a', '2']]);
  for (const text of ['', ' ', '{}', '[]', '7', '"a"', 'nonsense', '[{"a":1}]']) same(text, members(text), []);
  for (const text of ['{', '{"a', '{"a"', '{"a":', '{"a":[', '{"a":"\\', '}{', ':::', '{"a" 1}']) json.members(text);
  same('long strings', json.members(`{"a":"${'\\"x'.repeat(2_000_000)}","b":1}`).get('b'), '1');
  same('deep nesting', json.members(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)},"b":1}`).get('b'), '1');
  same('indented', json.indented('{"a":[1.50,{}],"b":[],"c":"x, {y"}').split('\n'), [
    '{', '  "a": [', '    1.50,', '    {}', '  ],', '  "b": [],', '  "c": "x, {y"', '}',
  ]);
  same('a string', [json.string('"a\\n"'), json.string('7'), json.string('"'), json.string(undefined)], ['a\n', null, null, null]);

  // Metrics.
  const all = metrics.samples('# TYPE a counter\na_total 7\na{b="c d"} 1.5\nh_bucket{le="0.1"} 2\nh_bucket{le="+Inf"} 4\n# EOF\n');
  same('a counter', [metrics.value(all, 'a_total'), metrics.value(all, 'a'), metrics.value(all, 'z')], [7, null, null]);
  const looked = metrics.buckets(all, 'h');
  same('buckets', looked.map(({ le, count }) => [String(le), count]), [['0.1', 2], ['Infinity', 4]]);
  same('no buckets', metrics.buckets(all, 'g'), []);
  const counts = [{ le: 1, count: 0 }, { le: 2, count: 10 }, { le: 4, count: 20 }, { le: Infinity, count: 20 }];
  const shares = [0.25, 0.5, 0.75, 1].map((share) => metrics.quantile(counts, share));
  same('quantiles', shares, [1.5, 2, 3, 4]);
  same('above all bounds', metrics.quantile([{ le: 1, count: 0 }, { le: Infinity, count: 3 }], 0.99), 1);
  same('nothing counted', [metrics.quantile([{ le: 1, count: 0 }], 0.5), metrics.quantile([], 0.5)], [null, null]);
  const twice = counts.map(({ le, count }) => ({ le, count: count * 2 }));
  same('what was added', metrics.added(counts, twice), counts);
  same('begun anew', [metrics.added(twice, counts), metrics.added([], counts)], [null, null]);
  same('rates', [metrics.rate(10, 30, 2), metrics.rate(30, 10, 2), metrics.rate(null, 1, 2)], [10, null, null]);

  if (held < 1_000) failures.push(`only ${held} cases were held`);
  return failures;
}
