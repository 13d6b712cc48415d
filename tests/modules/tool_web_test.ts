import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { call, type Fake, fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/tool-web/mod.ts";
import { hostGrant } from "../../modules/tool-web/host_grant.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** Serves on loopback while a test runs. */
function serve(handler: Handler) {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, handler);
  const { port } = server.addr;
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function mounted(net: string[] | true, config: Record<string, unknown> = {}): Promise<Fake> {
  const fake = fakeCoordinator({}, {}, { net });
  await mount(fake.coordinator, config);
  return fake;
}

const html = (body: string, type = "text/html") => new Response(body, { headers: { "content-type": type } });

async function message(fake: Fake, input: Record<string, unknown>, tool = "web_fetch"): Promise<string> {
  const result = await call(fake, tool, input as never);
  return String(result.success ? result.output : (result.error as { message: string }).message);
}

Deno.test("web_fetch returns HTML as Markdown with absolute links, and other text as it is", async () => {
  await using web = serve(({ url }) =>
    url.endsWith("/data")
      ? new Response('{"a":1}', { headers: { "content-type": "application/json" } })
      : html('<title>T</title><script>x()</script><h1>One</h1><p>Two <a href="/three">three</a></p>')
  );
  const fake = await mounted([web.host]);
  assertEquals(
    await message(fake, { url: `${web.url}/#top` }),
    `T\n\n# One\n\nTwo [three](${web.url}/three)`,
  );
  assertEquals(await message(fake, { url: `${web.url}/data` }), '{"a":1}');
});

Deno.test("web_fetch returns a long page in parts, from one request", async () => {
  let requests = 0;
  await using web = serve(() => (requests++, new Response("x".repeat(2_500))));
  const fake = await mounted([web.host], { page_chars: 1_000 });
  assertMatch(
    await message(fake, { url: web.url }),
    /^x{1000}\n\n\[characters 0-1000 of 2500; continue with offset 1000\]$/,
  );
  assertMatch(
    await message(fake, { url: web.url, offset: 2_000 }),
    /^x{500}\n\n\[characters 2000-2500 of 2500\]$/,
  );
  assertEquals(await message(fake, { url: web.url, offset: 9_000 }), "The page has only 2500 characters");
  assertEquals(requests, 1);
});

Deno.test("web_fetch follows redirects to granted hosts only, and at most ten", async () => {
  await using other = serve(() => new Response("private"));
  await using web = serve(({ url }) => {
    const { pathname, origin } = new URL(url);
    if (pathname === "/away") return Response.redirect(other.url, 302);
    if (pathname === "/file") return Response.redirect("file:///etc/passwd", 302);
    if (pathname === "/end") return new Response("arrived");
    return pathname === "/once" ? Response.redirect(`${origin}/end`, 301) : Response.redirect(url, 302);
  });
  const fake = await mounted([web.host]);
  assertEquals(await message(fake, { url: `${web.url}/once` }), `Redirected to ${web.url}/end\n\narrived`);
  assertMatch(
    await message(fake, { url: `${web.url}/away` }),
    /the plan does not permit 127\.0\.0\.1:\d+: it permits/,
  );
  assertMatch(await message(fake, { url: `${web.url}/file` }), /file: URLs cannot be fetched/);
  assertMatch(await message(fake, { url: `${web.url}/loop` }), /redirects more than 10 times/);
});

Deno.test("web_fetch with net: true refuses every private address, in each spelling and behind a name", async () => {
  await using web = serve(() => new Response("private"));
  const fake = await mounted(true);
  const port = new URL(web.url).port;
  for (
    const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `[::1]:${port}`,
      "169.254.169.254",
      "0x7f.1",
      "2130706433",
      "10.0.0.1",
      "[::ffff:10.0.0.1]",
      "0.0.0.0",
    ]
  ) {
    assertMatch(
      await message(fake, { url: `http://${host}/` }),
      /only public addresses may be fetched|unknown/,
      host,
    );
  }
});

Deno.test("web_fetch refuses other schemes, credentials, other ports and what is no URL", async () => {
  const fake = await mounted(["127.0.0.1:1"]);
  assertMatch(await message(fake, { url: "docs" }), /"docs" is not a URL/);
  assertMatch(await message(fake, { url: "file:///etc/passwd" }), /file: URLs cannot be fetched/);
  assertMatch(await message(fake, { url: "http://a:b@127.0.0.1:1/" }), /must not have a user or a password/);
  assertMatch(await message(fake, { url: "http://127.0.0.1:2/" }), /the plan does not permit 127\.0\.0\.1:2/);
  assertMatch(await message(fake, { url: "http://127.0.0.1:1/" }), /the server refused the connection/);
});

Deno.test("web_fetch says what is no text, what was refused, and where a page was cut", async () => {
  await using web = serve(({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/png") return html("\x89PNG", "image/png");
    if (pathname === "/404") {
      return new Response("<p>Not here</p>", { status: 404, headers: { "content-type": "text/html" } });
    }
    return new Response("x".repeat(5_000), { headers: { "content-type": "text/plain" } });
  });
  const fake = await mounted([web.host], { max_page_bytes: 2_000 });
  assertMatch(await message(fake, { url: `${web.url}/png` }), /it is image\/png of \d+ bytes, not text/);
  assertEquals(await message(fake, { url: `${web.url}/404` }), "The server answered 404\n\nNot here");
  assertMatch(
    await message(fake, { url: web.url }),
    /^Only the first 2000 bytes of the page were read\n\nx{2000}$/,
  );
});

Deno.test("web_fetch ends at its time for a page that never ends, and does not keep the program from other work", async () => {
  await using web = serve(({ url }) => {
    if (url.endsWith("/nested")) return html("<div>".repeat(100_000) + "deep");
    let timer: ReturnType<typeof setInterval>;
    return new Response(
      new ReadableStream({
        start: (controller) => void (timer = setInterval(() => controller.enqueue(new Uint8Array(1)), 5)),
        cancel: () => clearInterval(timer),
      }),
      { headers: { "content-type": "text/html" } },
    );
  });
  const fake = await mounted([web.host], { timeout_s: 0.3 });
  assertMatch(await message(fake, { url: web.url }), /no answer within 0\.3 s/);
  const patient = await mounted([web.host]);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  assertMatch(await message(patient, { url: `${web.url}/nested` }), /deep/);
  clearInterval(timer);
  assert(turns > 5, `${turns} turns`);
});

Deno.test("web_fetch reads the beginning of a page without a tag and of one without an end, and says so", async () => {
  const pages: Record<string, string> = {
    "/flat": "word ".repeat(1_000_000),
    "/long": "<p>é</p>".repeat(700_000),
    "/short": "<p>All of it",
  };
  await using web = serve(({ url }) => html(pages[new URL(url).pathname]!));
  const fake = await mounted([web.host], { page_chars: 500_000 });
  const endOf = async (path: string) => {
    let end = await message(fake, { url: web.url + path });
    for (let next; (next = /continue with offset (\d+)\]$/.exec(end)?.[1]);) {
      end = await message(fake, { url: web.url + path, offset: Number(next) });
    }
    return end;
  };
  const cut = /word |é/;
  for (const path of ["/flat", "/long"]) {
    const end = await endOf(path);
    assertMatch(end, cut);
    assertMatch(end, /\n\n\[The rest of the page is left out\]\n\n\[characters \d+-(\d+) of \1\]$/);
  }
  assertEquals(await endOf("/short"), "All of it");
});

Deno.test("web_fetch reads the encoding that a page declares, and a compressed page only up to its limit", async () => {
  await using web = serve(async ({ url }) => {
    if (url.endsWith("/latin")) {
      const bytes = [...'<meta charset="iso-8859-1"><p>caf\u00e9'].map((char) => char.charCodeAt(0));
      return new Response(new Uint8Array(bytes), { headers: { "content-type": "text/html" } });
    }
    const zeros = new Blob([new Uint8Array(50_000_000)]).stream().pipeThrough(new CompressionStream("gzip"));
    return new Response(await new Response(zeros).bytes(), {
      headers: { "content-type": "text/plain", "content-encoding": "gzip" },
    });
  });
  const fake = await mounted([web.host], { max_page_bytes: 10_000 });
  assertEquals(await message(fake, { url: `${web.url}/latin` }), "café");
  assertMatch(await message(fake, { url: `${web.url}/bomb` }), /^Only the first 10000 bytes/);
});

Deno.test("web_search asks Brave or Tavily with the key, and lists what they found", async () => {
  const seen: string[] = [];
  await using web = serve(async (request) => {
    const { searchParams } = new URL(request.url);
    seen.push(request.headers.get("x-subscription-token") ?? request.headers.get("authorization") ?? "");
    if (request.method === "GET") {
      const found = {
        title: "A <strong>hit</strong>",
        url: "https://a.example/",
        description: searchParams.get("q"),
      };
      return Response.json({ web: { results: [found, found] } });
    }
    const { query, max_results } = await request.json();
    return Response.json({
      results: [{ title: "T", url: "https://t.example/", content: `${query} ${max_results}` }],
    });
  });
  const brave = await mounted([web.host], { engine: "brave", api_key: "k1", base_url: web.url });
  assertEquals(
    await message(brave, { query: "deno", limit: 1 }, "web_search"),
    "1. A hit\n   https://a.example/\n   deno",
  );
  const tavily = await mounted([web.host], { engine: "tavily", api_key: "k2", base_url: web.url });
  assertEquals(
    await message(tavily, { query: "deno" }, "web_search"),
    "1. T\n   https://t.example/\n   deno 8",
  );
  assertEquals(seen, ["k1", "Bearer k2"]);
});

Deno.test("web_search says that it is not configured, and what an engine refuses", async () => {
  await using web = serve(() => new Response("bad key", { status: 401 }));
  assertMatch(
    await message(await mounted([web.host]), { query: "x" }, "web_search"),
    /not configured: the plan must name/,
  );
  const fake = await mounted([web.host], { engine: "brave", api_key: "k", base_url: web.url });
  assertMatch(
    await message(fake, { query: "x" }, "web_search"),
    /Cannot search with brave: it answered 401: bad key/,
  );
  const elsewhere = await mounted(["a.example"], { engine: "brave", api_key: "k", base_url: web.url });
  assertMatch(await message(elsewhere, { query: "x" }, "web_search"), /the plan does not permit/);
});

Deno.test("mount() refuses a plan without net, and an engine without a key", async () => {
  const error = await assertRejects(() => mount(fakeCoordinator().coordinator, {}));
  assertMatch(error.message, /add permissions: \{ net: \[example\.com\] \}/);
  const keyless = await assertRejects(() => mounted(true, { engine: "tavily" }));
  assertMatch(keyless.message, /engine: tavily needs api_key: \$\{TAVILY_API_KEY\}/);
});

Deno.test("hostGrant() covers hosts, ports and domains", () => {
  const allowed = (net: string[], url: string) => {
    try {
      hostGrant(net)!.check(new URL(url));
      return true;
    } catch {
      return false;
    }
  };
  assertEquals(allowed(["a.example"], "https://a.example:8443/"), true);
  assertEquals(allowed(["a.example:443"], "https://a.example/"), true);
  assertEquals(allowed(["a.example:443"], "http://a.example/"), false);
  assertEquals(allowed(["*.example"], "https://b.a.example/"), true);
  assertEquals(allowed(["*.a.example"], "https://evila.example/"), false);
  assertEquals(allowed(["[::1]:80"], "http://[::1]/"), true);
});
