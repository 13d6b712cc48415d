/** Servers that do not quite keep to the protocol, and connections that end. */
import type { JsonObject } from "preamp";
import type { TestCoordinator } from "preamp/testing";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { type Call, withServers } from "../support/mcp.ts";
import {
  HELLO,
  type Instead,
  onOddServer,
  type Received,
  result,
  stream,
} from "../support/odd_mcp_server.ts";

const NET = { net: ["127.0.0.1"] };
/** No test waits for the time of a call. */
const TIMEOUT_S = 600;

interface Odd {
  readonly call: Call;
  readonly methods: string[];
  readonly coordinator: TestCoordinator;
}

/** Calls `use` with the tools of a server that answers as `instead` says. */
function withOdd(instead: Instead, use: (odd: Odd) => Promise<void>, server: JsonObject = {}): Promise<void> {
  return onOddServer(instead, (url, methods) =>
    withServers(
      { servers: { odd: { url, ...server } }, timeout_s: TIMEOUT_S },
      (call, coordinator) => use({ call, methods, coordinator }),
      NET,
    ));
}

function onCall(answer: (received: Received) => ReturnType<Instead>): Instead {
  return (received) => received.method === "tools/call" ? answer(received) : undefined;
}

function text(value: string): JsonObject {
  return { content: [{ type: "text", text: value }] };
}

function warningsOf({ hooks }: TestCoordinator): string[] {
  return hooks.events.filter(([event, { level }]) => event === "user:notification" && level === "warning")
    .map(([, { message }]) => String(message));
}

Deno.test("a tool that cannot be used is left out or repaired, and a warning names it", async () => {
  const cases: [unknown, RegExp][] = [
    [
      { name: "odd", inputSchema: { properties: { a: { type: "string" } } } },
      /"odd" was repaired: .*no type: object/,
    ],
    [{ name: "odd" }, /"odd" was repaired: it has no inputSchema/],
    [{ name: "odd", inputSchema: { type: "string" } }, /"odd" is left out: .*of type string/],
    [{ name: "odd", inputSchema: { type: "object", required: "a" } }, /"odd" was repaired: .*required/],
    [{ ...HELLO, description: "again" }, /a second tool "hello" is left out/],
    [{ ...HELLO, name: "big", description: "x".repeat(70_000) }, /"big" is left out: .*70\d{3} characters/],
    [{ ...HELLO, name: null }, /tool 2 is left out: it has no name/],
    [null, /tool 2 is left out: it is null/],
    ["hello", /tool 2 is left out: it is string/],
  ];
  for (const [tool, warning] of cases) {
    const list: Instead = ({ method, id }) =>
      method === "tools/list" ? result(id, { tools: [HELLO, tool], nextCursor: null }) : undefined;
    await withOdd(list, async ({ call, coordinator }) => {
      const warnings = warningsOf(coordinator);
      assertEquals(warnings.length, 1, JSON.stringify(tool));
      assertMatch(warnings[0]!, /^Server "odd": /);
      assertMatch(warnings[0]!, warning);
      assertEquals(await call("odd__hello", { name: "Ada" }), "call 1");
      const repaired = coordinator.tools.odd__odd;
      if (repaired) assertEquals(repaired.input_schema?.type, "object");
    });
  }
});

Deno.test("null for what is absent is no oddity", async () => {
  const tool = {
    ...HELLO,
    description: null,
    title: null,
    annotations: null,
    outputSchema: null,
    _meta: null,
  };
  const list: Instead = ({ method, id }) =>
    method === "tools/list" ? result(id, { tools: [tool], nextCursor: null, _meta: null }) : undefined;
  await withOdd(list, ({ coordinator }) => {
    assertEquals(warningsOf(coordinator), []);
    assertEquals(coordinator.tools.odd__hello!.description, "hello");
    return Promise.resolve();
  });
});

Deno.test("pages of a list are read until one comes again or there are too many", async () => {
  let page = 0;
  const cursors = ["a", "b", "a"];
  const pages: Instead = ({ method, id }) =>
    method === "tools/list"
      ? result(id, { tools: [{ ...HELLO, name: `tool_${page}` }], nextCursor: cursors[page++] })
      : undefined;
  await withOdd(pages, ({ coordinator }) => {
    assertEquals(Object.keys(coordinator.tools), ["odd__tool_0", "odd__tool_1", "odd__tool_2"]);
    return Promise.resolve();
  });
  let next = 0;
  const endless: Instead = ({ method, id }) =>
    method === "tools/list" ? result(id, { tools: [], nextCursor: String(next++) }) : undefined;
  const first: Instead = (received) =>
    next === 0 && received.method === "tools/list"
      ? result(received.id, { tools: [HELLO], nextCursor: String(next++) })
      : endless(received);
  await withOdd(first, ({ coordinator }) => {
    assertMatch(warningsOf(coordinator).join(), /the list is too long: only its first 1 items are read/);
    return Promise.resolve();
  });
  assert(next < 100, String(next));
});

Deno.test("a result with one odd block keeps the others", async () => {
  const content = [
    { type: "text", text: "kept" },
    { type: "hologram", text: "its text" },
    { type: "hologram", depth: 3 },
    { type: "text", text: null, annotations: { priority: 7 } },
    { type: "image", data: "data:image/png;base64,iVBORw0KGgo=" },
    { type: "resource", resource: null },
    { type: "resource_link", uri: "file:///a" },
    "a bare text",
    null,
  ];
  await withOdd(
    onCall(({ id }) => result(id, { content, isError: null, structuredContent: null })),
    async ({ call }) => {
      const blocks = await call("odd__hello") as unknown as JsonObject[];
      assertEquals(blocks.map(({ type, text }) => type === "text" ? text : type), [
        "kept",
        "its text",
        "(a block of type hologram that is not known)",
        "",
        "image",
        "(a block of type resource without text)",
        "(resource file:///a)",
        "a bare text",
        "",
      ]);
    },
  );
});

Deno.test("a result in another form than a list of blocks is read", async () => {
  const cases: [unknown, string][] = [
    [{ content: "a text" }, "a text"],
    [{ content: { type: "text", text: "one block" } }, "one block"],
    [{ toolResult: "of the first protocol" }, "of the first protocol"],
    [{ structuredContent: { sum: 3 } }, '{"sum":3}'],
    [{ structuredContent: [1, 2] }, "[1,2]"],
    ["only a text", "only a text"],
    [{ content: null }, "Success"],
    [{ ...text("No."), isError: "true" }, "!No."],
  ];
  for (const [value, expected] of cases) {
    await withOdd(onCall(({ id }) => result(id, value)), async ({ call }) => {
      assertEquals(await call("odd__hello"), expected);
    });
  }
});

Deno.test("a tool that promises structured content may answer with text", () =>
  withOdd(
    ({ method, id }) =>
      method === "tools/list"
        ? result(id, { tools: [{ ...HELLO, outputSchema: { type: "object" } }] })
        : undefined,
    async ({ call }) => {
      assertEquals(await call("odd__hello"), "call 1");
    },
  ));

Deno.test("an answer with error: null is a result, and an error may have a text as its code", async () => {
  const cases: [JsonObject, RegExp][] = [
    [{ result: text("the result"), error: null }, /^the result$/],
    [
      { result: null, error: { code: "E_BAD", message: "no such city" } },
      /^!.*: error -32000: E_BAD: no such city$/,
    ],
    [{ error: "only words" }, /^!.*only words$/],
    [{ error: { code: -32602, message: null } }, /^!.*error -32602: the server gives no reason$/],
    [{ id: null, error: { code: -32700, message: "Parse error" } }, /^!.*Parse error$/],
    [{ id: null, result: text("without its id") }, /^without its id$/],
  ];
  for (const [answer, expected] of cases) {
    await withOdd(onCall(({ id }) => Response.json({ id, ...answer })), async ({ call }) => {
      assertMatch(await call("odd__hello"), expected);
    });
  }
});

Deno.test("an error of a validator is not what a person reads", () =>
  withOdd(
    ({ method, id }) => method === "initialize" ? result(id, { protocolVersion: 7 }) : undefined,
    () => Promise.resolve(),
  )
    .then(() => assert(false), (error) => {
      assertStringIncludes(
        String(error),
        'Cannot connect to server "odd": its answer does not have the form of the protocol',
      );
      assert(!String(error).includes("invalid_type"), String(error));
    }));

Deno.test("a session that a server has forgotten is begun again, and the call is sent once more", async () => {
  for (
    const [status, message] of [[404, "Session not found"], [
      400,
      "Bad Request: No valid session ID provided",
    ]] as const
  ) {
    let dead: string | null = null;
    const forget = onCall(({ request }) => {
      const session = request.headers.get("mcp-session-id");
      if (session === dead) {
        return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32001, message } }, { status });
      }
      dead ??= session;
      return undefined;
    });
    await withOdd(forget, async ({ call, methods }) => {
      assertEquals(await call("odd__hello"), "call 1");
      assertEquals(
        await Promise.all([call("odd__hello"), call("odd__hello")]).then((texts) => texts.sort()),
        ["call 2", "call 3"],
      );
      assertEquals(await call("odd__hello"), "call 4");
      assertEquals(methods.filter((method) => method === "initialize").length, 2);
    });
  }
});

Deno.test("a server that forgets every session fails the call, without end", () =>
  withOdd(onCall(() => new Response(null, { status: 404 })), async ({ call, methods }) => {
    assertMatch(await call("odd__hello"), /^!Server "odd" did not answer hello: it answered 404$/);
    assertEquals(methods.filter((method) => method === "tools/call").length, 2);
  }));

Deno.test("an answer that waits behind a stream is asked for with the id of the last event", async () => {
  const asked: (string | null)[] = [];
  let id: unknown;
  const answer = (value: string) =>
    `id: e9\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, result: text(value) })}\n\n`;
  const polled = (first: () => Response): Instead => ({ method, id: call, request }) => {
    if (method === "tools/call") {
      id = call;
      return first();
    }
    if (method !== "GET") return undefined;
    asked.push(request.headers.get("last-event-id"));
    if (asked.length === 1) return stream("id: e2\ndata:\n\n"); // not yet
    if (asked.length === 2) return new Response("busy", { status: 503 });
    return stream(answer("polled"));
  };
  for (const end of ["ends", "cut"] as const) {
    await withOdd(polled(() => stream("id: e1\nretry: 1\ndata: \n\n", end)), async ({ call }) => {
      assertEquals(await call("odd__hello"), "polled");
      assertEquals(asked.splice(0), ["e1", "e2", "e2"]);
    });
  }
});

Deno.test("a stream that ends without the answer fails the call at once, and the next call is answered", async () => {
  const cases: [() => Response, RegExp][] = [
    [() => stream(": hello\n\n"), /the stream ended before the answer/],
    [() => stream(": hello\n\n", "cut"), /the connection was cut before the answer/],
    [
      () => stream('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'),
      /the stream ended before the answer/,
    ],
    [() => new Response(null, { status: 202 }), /it answered 202 with nothing, not MCP/],
    [
      () => new Response("<html>Hello</html>", { headers: { "content-type": "text/html" } }),
      /200 with text\/html, not MCP/,
    ],
    [() => Response.json({}), /it answered 200 without the answer to this request/],
    [
      () => new Response("{", { headers: { "content-type": "application/json" } }),
      /without the answer to this request/,
    ],
    [() => stream("id: e1\nretry: 1\ndata: \n\n"), /cannot be taken up again: it answered 405/],
  ];
  for (const [first, expected] of cases) {
    let calls = 0;
    await withOdd(onCall(() => calls++ === 0 ? first() : undefined), async ({ call }) => {
      assertMatch(await call("odd__hello"), expected);
      assertEquals(await call("odd__hello"), "call 1");
    });
  }
});

Deno.test("a stream that stays open after the answer is left, and one that is cancelled is not taken up", async () => {
  let gets = 0;
  const controller = new AbortController();
  const answers: Instead = ({ method, id, params }) => {
    if (method === "GET") gets++;
    if (method !== "tools/call") return undefined;
    const { name } = params?.arguments as { name?: string };
    if (name === "cancelled") {
      controller.abort(new Error("stopped"));
      return stream("id: e1\nretry: 1\ndata: \n\n", "stays");
    }
    return stream(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: text("there") })}\n\n`, "stays");
  };
  await withOdd(answers, async ({ call }) => {
    assertEquals(await call("odd__hello", {}), "there");
    const { signal } = controller;
    await assertRejects(() => call("odd__hello", { name: "cancelled" }, { signal }), Error, "stopped");
    assertEquals(await call("odd__hello", {}), "there");
    assertEquals(gets, 0);
  });
});

Deno.test("a refusal says its status and what to do, and no secret", async () => {
  const refused = (status: number, headers: Record<string, string> = {}, body: string | null = null) =>
    onCall(() => new Response(body, { status, headers }));
  const textOf = async (instead: Instead, server: JsonObject = {}) => {
    let found = "";
    await withOdd(instead, async ({ call }) => void (found = await call("odd__hello")), server);
    return found;
  };
  assertMatch(
    await textOf(refused(401, { "www-authenticate": "Bearer" })),
    /it wants authorization \(401\); give it a valid token in the plan, such as headers: \{ authorization:/,
  );
  const headers = { authorization: "Bearer token-of-ada" };
  const expired = await textOf(refused(401, {}, '{"error_description":"The token expired"}'), { headers });
  assertMatch(
    expired,
    /does not accept the token it was sent, which may be expired \(401\): The token expired/,
  );
  assert(!expired.includes("token-of-ada"));
  const echoed = await textOf(refused(400, {}, "Bad token token-of-ada of team-seven"), {
    headers: { ...headers, "x-team": "team-seven" },
  });
  assertMatch(echoed, /hello: it answered 400: Bad token \[REDACTED\] of \[REDACTED\]$/);
  assertMatch(await textOf(refused(403)), /it does not permit this \(403\)/);
  assertMatch(
    await textOf(refused(503, { "retry-after": "30" })),
    /it answered 503; it may be asked again in 30 s/,
  );
  assertMatch(
    await textOf(refused(500, { "content-type": "text/html" }, "<h1>Oops</h1>")),
    /hello: it answered 500$/,
  );
  const unconnected = ({ method }: Received) =>
    method === "GET" ? undefined : new Response(null, { status: 401 });
  await assertRejects(
    () => withOdd(unconnected, () => Promise.resolve()),
    Error,
    'Cannot connect to server "odd": it wants authorization (401)',
  );
  const { message } = await assertRejects(
    () =>
      withServers(
        { servers: { gone: { url: "http://127.0.0.1:9/mcp?key=hidden" } } },
        () => Promise.resolve(),
        NET,
      ),
    Error,
    'Cannot connect to server "gone": No connection to 127.0.0.1:9: ',
  );
  assert(!message.includes("hidden"), message);
});

Deno.test("a server of the older transport is found at its address, and reached again after its stream has ended", async () => {
  let send: (event: string, data: string) => void = () => {};
  let cut: () => void = () => {};
  let streams = 0;
  const old: Instead = ({ method, id, request }) => {
    const { pathname } = new URL(request.url);
    if (method === "GET") {
      streams++;
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          send = (event, data) =>
            controller.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${data}\n\n`));
          cut = () => controller.close();
        },
      });
      send("endpoint", "/messages?session=1");
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    if (pathname !== "/messages") return new Response(null, { status: 405 });
    const answer = (value: unknown) => send("message", JSON.stringify({ jsonrpc: "2.0", id, result: value }));
    if (method === "initialize") {
      answer({
        protocolVersion: "2024-11-05",
        capabilities: { tools: {} },
        serverInfo: { name: "old", version: "1" },
      });
    } else if (method === "tools/list") answer({ tools: [HELLO] });
    else if (method === "tools/call") {
      if (streams === 2) answer(text("from the second stream"));
      else cut();
    }
    return new Response(null, { status: 202 });
  };
  for (const server of [{}, { type: "sse" }]) {
    streams = 0;
    await withOdd(old, async ({ call }) => {
      assertMatch(await call("odd__hello"), /^!.*: the server ended the stream$/);
      assertEquals(await call("odd__hello"), "from the second stream");
      cut();
    }, server);
  }
  const elsewhere: Instead = ({ method }) =>
    method === "GET" ? stream("event: endpoint\ndata: http://127.0.0.1:1/messages\n\n", "stays") : undefined;
  await assertRejects(
    () => withOdd(elsewhere, () => Promise.resolve(), { type: "sse" }),
    Error,
    "the server names another host for its messages",
  );
});

Deno.test("a server that is optional is left out with a warning; its tools are pinned or not locked at all", () =>
  onOddServer(() => undefined, (url) =>
    withServers(
      { servers: { odd: { url }, gone: { url: "http://127.0.0.1:9/mcp", optional: true } } },
      (call, coordinator) => {
        assertMatch(warningsOf(coordinator)[0]!, /^Cannot connect to server "gone"/);
        return call("odd__hello").then((found) => assertEquals(found, "call 1"));
      },
      NET,
    )));

Deno.test("300,000 blocks are a result, whose texts are all there", () => {
  const blocks = Array.from({ length: 300_000 }, (_, index) => ({ type: "text", text: String(index) }));
  blocks.push({ type: "hologram" } as unknown as typeof blocks[number]);
  return withOdd(onCall(({ id }) => result(id, { content: blocks })), async ({ call }) => {
    const expected = blocks.slice(0, -1).map((block) => block.text).join("\n");
    assertEquals(await call("odd__hello"), `${expected}\n(a block of type hologram that is not known)`);
  });
});

Deno.test("servers in the form of .mcp.json are taken", async () => {
  await using folder = await temporaryFolder();
  const file = `${folder.path}/server.js`;
  await Deno.copyFile(new URL("../fixtures/mcp_server.js", import.meta.url), file);
  const mcpServers = {
    local: {
      type: "stdio",
      command: Deno.execPath(),
      args: ["run", "--no-lock", "-A", "server.js"],
      env: { A: "b" },
      cwd: folder.path,
    },
  };
  await withServers({ mcpServers }, async (call) => {
    assertEquals(JSON.parse(await call("local__env")).A, "b");
  });
  await onOddServer(
    () => undefined,
    (url) =>
      withServers({ mcpServers: { web: { type: "http", url, headers: {} } } }, async (call) => {
        assertEquals(await call("web__hello"), "call 1");
      }, NET),
  );
  const refused = async (server: JsonObject, message: string) => {
    await assertRejects(
      () => withServers({ mcpServers: { a: server } }, () => Promise.resolve()),
      Error,
      message,
    );
  };
  await refused({ type: "stdio", url: "https://a.example/mcp" }, "must be http or sse for a server with url");
  await refused({ type: "http", command: "npx" }, "must be stdio for a server with command");
  await refused({ command: "npx -y some-server" }, "must be the program alone");
  await refused({ url: "https://a.example/mcp", cwd: "/" }, "is for servers with command or npm");
});
