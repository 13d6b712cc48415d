import fc from "fast-check";
import { type Client, parseForwarded, TrustedProxies } from "../../../src/server/net/forwarded.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

const PROXY = "10.0.0.1";
const proxies = new TrustedProxies(["10.0.0.0/8", "127.0.0.1", "2001:db8:1::/48"]);

function clientOf(headers: Record<string, string>, peer: string | null = PROXY): Client {
  return proxies.clientOf(peer, new Headers(headers));
}

const parsed = (header: string): unknown =>
  parseForwarded(header)?.map((element) => Object.fromEntries(element)) ?? null;

for (
  const [header, expected] of [
    ['for="_gazonk"', [{ for: "_gazonk" }]],
    ['For="[2001:db8:cafe::17]:4711"', [{ for: "[2001:db8:cafe::17]:4711" }]],
    ["for=192.0.2.60;proto=http;by=203.0.113.43", [{ for: "192.0.2.60", proto: "http", by: "203.0.113.43" }]],
    ["for=192.0.2.43, for=198.51.100.17", [{ for: "192.0.2.43" }, { for: "198.51.100.17" }]],
    ['for="a,b;c=\\"d\\\\";host=x', [{ for: 'a,b;c="d\\', host: "x" }]],
    ["for=a;;host=b;,,\t, for=c ; proto=https ", [{ for: "a", host: "b" }, { for: "c", proto: "https" }]],
    ["", []],
    [" , ,", []],
    ['for=""', [{ for: "" }]],
    ["for=a;FOR=b", null],
    ["for=", null],
    ["for", null],
    ["=a", null],
    ["for =a", null],
    ["for= a", null],
    ['for="a', null],
    ['for="a"b', null],
    ["for=[::1]", null],
    ["for=a b=c", null],
  ] as const
) {
  Deno.test(`parseForwarded() parses ${JSON.stringify(header)}`, () =>
    assertEquals(parsed(header), expected));
}

/** Texts that a header may have: any characters but control characters. */
const text = fc.string({ unit: "binary-ascii" }).map((all) => all.replace(/\p{Cc}/gu, ""));
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}$/);

Deno.test("parseForwarded() returns every parameter that was written, and never throws", () => {
  const element = fc.uniqueArray(fc.tuple(token, fc.oneof(token, text), fc.boolean()), {
    selector: ([name]) => name.toLowerCase(),
    minLength: 1,
    maxLength: 4,
  });
  const separator = fc.constantFrom("", " ", "\t ");
  fc.assert(fc.property(fc.array(element, { minLength: 1, maxLength: 4 }), separator, (elements, space) => {
    const isToken = (value: string) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value);
    const written = elements.map((pairs) =>
      pairs.map(([name, value, quoted]) =>
        `${name}=${isToken(value) && !quoted ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`
      ).join(`${space};${space}`)
    ).join(`${space},${space}`);
    const expected = elements.map((pairs) => pairs.map(([name, value]) => [name.toLowerCase(), value]));
    assertEquals([written, parseForwarded(written)?.map((one) => [...one])], [written, expected]);
  }));
  fc.assert(fc.property(text, (header) => void parseForwarded(header)));
});

Deno.test("a client is the first address from the right that is not trusted", () => {
  const trusted = fc.constantFrom("10.1.2.3", "10.255.255.255", "127.0.0.1", "2001:db8:1::5");
  const other = fc.constantFrom("192.0.2.1", "11.0.0.1", "2001:db8:2::1", "127.0.0.2", "_hidden", "unknown");
  fc.assert(
    fc.property(
      fc.array(fc.oneof(trusted, other)),
      other,
      fc.array(trusted),
      fc.boolean(),
      (left, client, right, plain) => {
        const nodes = [...left, client, ...right];
        const header = plain ? { "x-forwarded-for": nodes.join(", ") } : {
          forwarded: nodes.map((node) => `for="${node.includes(":") ? `[${node}]:80` : node}"`).join(","),
        };
        assertEquals(clientOf(header), { address: client, scheme: null, host: null });
      },
    ),
  );
});

Deno.test("the headers of a peer that is not trusted are ignored", () => {
  const headers = {
    forwarded: "for=192.0.2.1;proto=https;host=evil.example",
    "x-forwarded-for": "192.0.2.1",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "evil.example",
  };
  fc.assert(fc.property(fc.ipV4().filter((ip) => !/^(10\.|127\.0\.0\.1$)/.test(ip)), (peer) => {
    assertEquals(clientOf(headers, peer), { address: peer, scheme: null, host: null });
  }));
  assertEquals(clientOf(headers, null), { address: null, scheme: null, host: null });
  const none = new TrustedProxies([]);
  assertEquals(none.clientOf(PROXY, new Headers(headers)), { address: PROXY, scheme: null, host: null });
});

for (
  const [headers, expected] of [
    [{}, [PROXY, null, null]],
    [{ forwarded: 'for=192.0.2.1;proto=HTTPS;host="a.example:8443"' }, [
      "192.0.2.1",
      "https",
      "a.example:8443",
    ]],
    [{ forwarded: "for=192.0.2.9;host=evil, for=192.0.2.1;host=a.example" }, [
      "192.0.2.1",
      null,
      "a.example",
    ]],
    [{ forwarded: "for=192.0.2.1;proto=https, for=10.0.0.2;proto=http" }, ["192.0.2.1", "https", null]],
    [{ forwarded: "for=192.0.2.1, for=10.0.0.2;host=a.example" }, ["192.0.2.1", null, "a.example"]],
    [{ forwarded: 'for="[::FFFF:192.0.2.1]:_p"' }, ["::ffff:192.0.2.1", null, null]],
    [{ forwarded: "for=192.0.2.1, oops" }, [PROXY, null, null]],
    [{ forwarded: "for=192.0.2.1;host=a.example:8443" }, [PROXY, null, null]], // a colon must be quoted
    [{ forwarded: "for=999.0.2.1;host=a.example" }, [PROXY, null, "a.example"]],
    [{ forwarded: "proto=https" }, [PROXY, "https", null]],
    [{ forwarded: 'for=192.0.2.1;proto=ftp;host="a/b"' }, ["192.0.2.1", null, null]],
    [{ forwarded: 'for=192.0.2.1;host="a@b"' }, ["192.0.2.1", null, null]],
    [{ "x-forwarded-for": "192.0.2.1:1234" }, ["192.0.2.1", null, null]],
    [{ "x-forwarded-for": "[2001:DB8::1]:80" }, ["2001:db8::1", null, null]],
    [{ "x-forwarded-proto": "https", "x-forwarded-host": "a.example" }, [PROXY, "https", "a.example"]],
    [{ "x-forwarded-for": "6.6.6.6, 192.0.2.1", "x-forwarded-proto": "http, https" }, [
      "192.0.2.1",
      "https",
      null,
    ]],
    [{ "x-forwarded-for": "192.0.2.1, 10.0.0.2", "x-forwarded-host": "a.example, b.example" }, [
      "192.0.2.1",
      null,
      "a.example",
    ]],
    [{ "x-forwarded-for": "192.0.2.1, 10.0.0.2", "x-forwarded-host": "a.example" }, [
      "192.0.2.1",
      null,
      "a.example",
    ]],
    [{ forwarded: "for=192.0.2.1", "x-forwarded-for": "6.6.6.6, 192.0.2.1" }, ["192.0.2.1", null, null]],
    [{ forwarded: "for=6.6.6.6;host=evil", "x-forwarded-for": "192.0.2.1" }, [PROXY, null, null]],
    [{ forwarded: "host=evil", "x-forwarded-for": "192.0.2.1" }, [PROXY, null, null]],
  ] as [Record<string, string>, [string, string | null, string | null]][]
) {
  Deno.test(`the client behind a trusted proxy with ${JSON.stringify(headers)} is ${JSON.stringify(expected)}`, () => {
    const { address, scheme, host } = clientOf(headers);
    assertEquals([address, scheme, host], expected);
  });
}

Deno.test("a proxy that a listener on :: sees as a mapped address is trusted", () => {
  assertEquals(clientOf({ "x-forwarded-for": "192.0.2.1" }, "::ffff:10.0.0.1").address, "192.0.2.1");
});

for (
  const text of ["", "proxy", "10.0.0.0/33", "10.0.0.0/08", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/8/8"]
) {
  Deno.test(`TrustedProxies refuses ${JSON.stringify(text)}`, () => {
    assertThrows(() => new TrustedProxies([text]), TypeError, "write an IP address");
  });
}
