import { type FetchOptions, FileFetcher } from "../../../src/loader/fetch/file_fetcher.ts";
import { sourceRules } from "../../../src/policy/source_rules.ts";
import type { PreampError } from "../../../src/sdk/errors.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { makeCertificate } from "./certificate.ts";
import { compressedZeros } from "../../support/hostile_inputs.ts";
import { policyOf, refusal, serveFiles } from "../../support/loader.ts";
import type { Policy } from "../../../src/policy/policy.ts";

const SHA_HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

function fetcherOf(
  entry: string,
  limits: Partial<Policy["limits"]> = {},
  more: Partial<FetchOptions> = {},
): FileFetcher {
  const policy = policyOf({ private_hosts: ["127.0.0.1"] }, limits);
  const rules = sourceRules("operator", policy, new URL(entry));
  return new FileFetcher({
    rules,
    limits: policy.limits,
    signal: new AbortController().signal,
    count: () => {},
    ...more,
  });
}

async function fetchOne(
  url: string,
  limits: Partial<Policy["limits"]> = {},
  more: Partial<FetchOptions> = {},
) {
  using fetcher = fetcherOf(url, limits, more);
  return await fetcher.fetch(url, { as: "entry" }, true);
}

function failure(
  url: string,
  limits: Partial<Policy["limits"]> = {},
  more: Partial<FetchOptions> = {},
): Promise<PreampError> {
  return refusal(() => fetchOne(url, limits, more));
}

Deno.test("fetch() gives the decoded bytes, their hash and where they were", async () => {
  const gzip = new Response(new Blob(["hello"]).stream().pipeThrough(new CompressionStream("gzip"))).bytes();
  const zipped = await gzip;
  await using server = serveFiles({
    "a.ts": "hello",
    "gzip.ts": () =>
      new Response(zipped, { headers: { "content-encoding": "gzip", "cache-control": "max-age=60" } }),
    "moved.ts": () => new Response(null, { status: 301, headers: { location: "./a.ts#part" } }),
  });
  for (const path of ["a.ts", "gzip.ts", "moved.ts"]) {
    const { sha256, bytes } = await fetchOne(server.url + path);
    assertEquals([path, sha256, new TextDecoder().decode(bytes)], [path, SHA_HELLO, "hello"]);
  }
  assertEquals((await fetchOne(`${server.url}moved.ts`)).url, `${server.url}a.ts`);
  assertEquals((await fetchOne(`${server.url}gzip.ts`)).max_age_s, 60);
});

Deno.test("fetch() takes https from a certificate that is trusted for the address, and from no other", async () => {
  const { ca, cert, key } = await makeCertificate("127.0.0.1");
  await using server = serveFiles({ "a.ts": "hello", "b.ts": "hello" }, { cert, key });
  using fetcher = fetcherOf(server.url, {}, { ca_certs: [ca] });
  assertEquals((await fetcher.fetch(`${server.url}a.ts`, { as: "entry" }, true)).sha256, SHA_HELLO);
  assertEquals((await fetcher.fetch(`${server.url}b.ts`, { as: "entry" }, true)).sha256, SHA_HELLO);
  assertMatch((await failure(`${server.url}a.ts`)).message, /certificate is not trusted/);
  const other = await makeCertificate("127.0.0.2");
  await using wrong = serveFiles({ "a.ts": "hello" }, other);
  assertMatch(
    (await failure(`${wrong.url}a.ts`, {}, { ca_certs: [other.ca] })).message,
    /certificate is not trusted/,
  );
});

Deno.test("fetch() sends nothing that could leak, at the first hop and the next", async () => {
  const seen: string[][] = [];
  const look = (request: Request) => void seen.push([...request.headers.keys()].sort());
  await using target = serveFiles({ "b.ts": (request) => (look(request), new Response("hello")) });
  await using server = serveFiles({
    "a.ts": (
      request,
    ) => (look(request),
      new Response(null, { status: 302, headers: { location: `${target.url}b.ts`, "set-cookie": "a=b" } })),
  });
  await fetchOne(`${server.url}a.ts`);
  const headers = ["accept", "accept-encoding", "host", "user-agent"];
  assertEquals(seen, [headers, headers]);
});

Deno.test("fetch() uses a connection again, and a new one when the old was closed", async () => {
  const peers = new Set<string>();
  let close = false;
  const listening = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (_, { remoteAddr }) => {
    peers.add(String((remoteAddr as Deno.NetAddr).port));
    return new Response("hello", close ? { headers: { connection: "close" } } : {});
  });
  const url = `http://127.0.0.1:${listening.addr.port}/`;
  {
    using fetcher = fetcherOf(url);
    for (const path of ["a", "b", "c"]) await fetcher.fetch(url + path, { as: "entry" }, true);
    assertEquals(peers.size, 1);
    close = true;
    for (const path of ["d", "e"]) await fetcher.fetch(url + path, { as: "entry" }, true);
    assertEquals(peers.size, 2);
  }
  await listening.shutdown();
});

Deno.test("fetch() asks again on a new connection when a kept one turns out to be closed", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = (async () => {
    for (let turn = 0; turn < 2; turn++) {
      const conn = await listener.accept();
      await conn.read(new Uint8Array(4096));
      await conn.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
      conn.close(); // without saying so
    }
  })();
  const url = `http://127.0.0.1:${listener.addr.port}/`;
  {
    using fetcher = fetcherOf(url);
    assertEquals((await fetcher.fetch(`${url}a.ts`, { as: "entry" }, true)).sha256, SHA_HELLO);
    assertEquals((await fetcher.fetch(`${url}b.ts`, { as: "entry" }, true)).sha256, SHA_HELLO);
  }
  await served;
  listener.close();
});

Deno.test("fetch() stops reading a file that is too large, whatever its length says", async () => {
  const endless = () => {
    const random = () => crypto.getRandomValues(new Uint8Array(4096)); // compression does not hold it back
    return new ReadableStream({ pull: (controller) => controller.enqueue(random()) });
  };
  await using server = serveFiles({
    "plain.ts": "x".repeat(2000),
    "endless.ts": () => new Response(endless()),
    "bomb.ts": () =>
      new Response(
        endless().pipeThrough(new CompressionStream("gzip")),
        { headers: { "content-encoding": "gzip" } },
      ),
  });
  for (const path of ["plain.ts", "endless.ts", "bomb.ts"]) {
    const error = await failure(server.url + path, { max_module_bytes: 1999 });
    assertEquals([path, error.code], [path, "module_too_large"]);
    assertMatch(error.message, /1999 bytes/);
  }
});

Deno.test("fetch() refuses a module that is small only while it is compressed", async () => {
  const bomb = await compressedZeros(64);
  await using server = serveFiles({
    "bomb.ts": () => new Response(bomb, { headers: { "content-encoding": "gzip" } }),
  });
  assertEquals((await failure(`${server.url}bomb.ts`)).code, "module_too_large");
});

Deno.test("fetch() gives up after the time for one request, wherever the server stalls", async () => {
  const stalled = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode("a")),
  });
  await using server = serveFiles({ "body.ts": () => new Response(stalled) });
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 }); // accepts, and never answers
  for (const url of [`${server.url}body.ts`, `http://127.0.0.1:${listener.addr.port}/head.ts`]) {
    const error = await failure(url, { fetch_timeout_s: 0.05 });
    assertEquals([url, error.code], [url, "module_fetch_timeout"]);
  }
  listener.close();
});

Deno.test("fetch() follows five redirects and no sixth", async () => {
  await using server = serveFiles(Object.fromEntries(
    Array.from({ length: 7 }, (_, index) => [
      `${index}.ts`,
      () =>
        index === 6
          ? new Response("hello")
          : new Response(null, { status: 307, headers: { location: `${index + 1}.ts` } }),
    ]),
  ));
  assertEquals((await fetchOne(`${server.url}1.ts`)).sha256, SHA_HELLO);
  assertMatch((await failure(`${server.url}0.ts`)).message, /redirects more than 5 times/);
});

Deno.test("fetch() leaves neither http nor https at a redirect", async () => {
  const targets = [
    "file:///etc/passwd",
    "data:text/javascript,1",
    "ftp://127.0.0.1/x",
    "//127.0.0.1:1:1/",
    "javascript:1",
  ];
  await using server = serveFiles(Object.fromEntries(
    targets.map((
      location,
      index,
    ) => [`${index}.ts`, () => new Response(null, { status: 302, headers: { location } })]),
  ));
  for (const [index, target] of targets.entries()) {
    const { code } = await failure(`${server.url}${index}.ts`);
    assert(
      code === "module_source_denied" || target.startsWith("//") && code === "module_fetch_failed",
      `${target} ${code}`,
    );
  }
});

Deno.test("fetch() does not go from https to http", async () => {
  const { ca, cert, key } = await makeCertificate("127.0.0.1");
  await using plain = serveFiles({ "a.ts": "hello" });
  await using server = serveFiles({
    "a.ts": () => new Response(null, { status: 302, headers: { location: `${plain.url}a.ts` } }),
  }, { cert, key });
  const error = await failure(`${server.url}a.ts`, {}, { ca_certs: [ca] });
  assertEquals(error.code, "module_source_denied");
  assertMatch(error.message, /from https to http/);
  assertEquals(plain.requests, []);
});

Deno.test("fetch() says what the server answered, and what to do", async () => {
  await using server = serveFiles({
    "page.ts": () => new Response("<html>", { headers: { "content-type": "text/html; charset=utf-8" } }),
    "private.ts": () => new Response("no", { status: 401 }),
    "broken.ts": () => new Response("no", { status: 500 }),
    "brotli.ts": () => new Response("x", { headers: { "content-encoding": "br" } }),
  });
  const cases = {
    "page.ts": /web page, not a module: name the URL of the raw file/,
    "private.ts": /answered 401: it requires credentials, which are not supported/,
    "broken.ts": /answered 500/,
    "gone.ts": /answered 404: check the path/,
    "brotli.ts": /content coding/,
  };
  for (const [path, expected] of Object.entries(cases)) {
    const error = await failure(server.url + path);
    assertEquals(error.code, "module_fetch_failed");
    assertMatch(error.message, expected);
    assertMatch(error.message, new RegExp(`^Cannot fetch http://127.0.0.1:${server.port}/`));
  }
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  assertMatch((await failure(`http://127.0.0.1:${port}/a.ts`)).message, /refused the connection/);
  const lookup = () => Promise.reject(new Error("getaddrinfo ENOTFOUND"));
  assertMatch((await failure("https://nowhere.test/a.ts", {}, { lookup })).message, /host is unknown/);
});

Deno.test("fetch() never shows a query, which may be a signature, nor a folder of this machine", async () => {
  await using server = serveFiles({});
  const error = await failure(`${server.url}a.ts?signature=s3cret`);
  assert(!error.message.includes("s3cret"), error.message);
  const folder = await Deno.makeTempDir();
  const missing = await failure(`file://${folder}/mod.ts`);
  assert(!missing.message.includes(folder), missing.message);
  assertMatch(missing.message, /…\/mod\.ts: the file does not exist/);
  assertMatch(
    (await failure(`file://${folder}/mod.ts`, {}, { base_url: `file://${folder}/plan.yaml` })).message,
    /\.\/mod\.ts/,
  );
  assertMatch((await failure(`file://${folder}`)).message, /it is a folder/);
  await Deno.remove(folder);
});

Deno.test("fetch() reads data: URLs and files within the same limits", async () => {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(file, "hello");
  for (const url of ["data:text/typescript,hello", "data:;base64,aGVsbG8=", `file://${file}`]) {
    assertEquals((await fetchOne(url)).sha256, SHA_HELLO);
    assertEquals((await failure(url, { max_module_bytes: 4 })).code, "module_too_large");
  }
  await Deno.remove(file);
  assertEquals((await failure("data:text/javascript;base64,%%%")).code, "module_fetch_failed");
});

Deno.test("fetch() reads no device", async () => {
  assertMatch((await failure("file:///dev/zero")).message, /not a regular file/);
});
