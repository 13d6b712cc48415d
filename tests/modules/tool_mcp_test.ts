import type { JsonObject } from "preamp";
import { FakeApproval, MockProvider, TestCoordinator } from "preamp/testing";
import { Deadline } from "../../modules/tool-mcp/deadline.ts";
import * as mcp from "../../modules/tool-mcp/mod.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";
import { withServers } from "../support/mcp.ts";
import { onWebServer } from "../support/mcp_web_server.ts";

const FIXTURE = new URL("../fixtures/mcp_server.js", import.meta.url).pathname;

/** Returns a local server of the fixture. */
function fixture(...flags: string[]): JsonObject {
  return { command: [Deno.execPath(), "run", "--no-lock", "-A", FIXTURE, ...flags] };
}

Deno.test("tools of a local server are mounted under its name, and answer", () =>
  withServers({ servers: { mail: fixture() } }, async (call, { tools }) => {
    const names = Object.keys(tools);
    assertEquals(names.filter((name) => !name.startsWith("mail__")), []);
    assertEquals(tools.mail__echo!.description, "The tool echo");
    assertEquals(await call("mail__echo", { to: "ada" }), "ada");
    const dotted = names.find((name) => name.startsWith("mail__dotted_name_"))!;
    assertEquals(await call(dotted), "dotted");
    assertEquals(tools.mail__read_note!.risk, "high"); // it is not pinned
  }));

Deno.test("a local server gets the variables of its config, and no other that could be a secret", async () => {
  Deno.env.set("A_TEST_API_KEY", "secret-value");
  try {
    const server = { ...fixture(), env: { OWN: "own-value" } };
    await withServers({ servers: { mail: server } }, async (call) => {
      const env = await call("mail__env");
      assertStringIncludes(env, "own-value");
      assert(!env.includes("secret-value"));
    });
  } finally {
    Deno.env.delete("A_TEST_API_KEY");
  }
});

Deno.test("a server that ends when it is probed is an old one", () =>
  withServers({ servers: { mail: fixture("ends_when_probed") } }, async (call) => {
    assertEquals(await call("mail__echo", { to: "old" }), "old");
  }));

Deno.test("servers that die, hang and answer too much end as results for the model", () =>
  withServers(
    { servers: { mail: fixture() }, timeout_s: 0.3, max_result_bytes: 100_000 },
    async (call, _, progress) => {
      assertMatch(await call("mail__hang"), /^!Server "mail" did not answer hang: it took more than 0.3 s/);
      assertEquals(progress, ["Half of it"]);
      const controller = new AbortController();
      const hanging = call("mail__hang", {}, { signal: controller.signal });
      controller.abort(new Error("stopped"));
      await assertRejects(() => hanging, Error, "stopped");
      assertEquals((await call("mail__big", { bytes: 50_000 })).length, 50_000);
      assertMatch(
        await call("mail__big", { bytes: 200_000 }),
        /^!Server "mail" did not answer big: A message has more than 100000 bytes/,
      );
      assertEquals(await call("mail__echo", { to: "x" }), "x"); // it was started again
    },
  ));

Deno.test("tools that would fill the context are found by mcp_search, and keep their names", async () => {
  const config = { servers: { mail: fixture() } };
  await withServers({ ...config, discovery: "search" }, async (call, { tools, session_state }) => {
    assertEquals(Object.keys(tools), ["mcp_search"]);
    assertMatch(await call("mcp_search", { query: "weather" }), /No tool fits/);
    assertMatch(
      await call("mcp_search", { query: "send a mail" }),
      /now:\nmail__send_mail: The tool send_mail/,
    );
    assert(Object.keys(tools).includes("mail__send_mail"));
    assertEquals(await call("mail__send_mail", { to: "ada" }), "Sent to ada.");
    assert((session_state["tool-mcp"] as { found: string[] }).found.includes("mail__send_mail"));
  });
  const session_state = { "tool-mcp": { found: ["mail__echo"] } };
  const later = new TestCoordinator({ permissions: { run: true }, session_state });
  try {
    await mcp.mount(later, { ...config, discovery: "search" });
    assertEquals(Object.keys(later.tools), ["mail__echo", "mcp_search"]);
  } finally {
    await later.cleanup();
  }
  // by itself where the context is small
  const small = new TestCoordinator({ permissions: { run: true } });
  await small.mount("providers", new MockProvider({ context_window: 2_000 }), "mock");
  try {
    await mcp.mount(small, config);
    assertEquals(Object.keys(small.tools), ["mcp_search"]);
  } finally {
    await small.cleanup();
  }
});

Deno.test("what a server asks a person is an approval, and the time of the call waits for it", async () => {
  for (const decision of ["Allow", "Deny"]) {
    const person = new FakeApproval([async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_200)); // longer than the call may take
      return decision;
    }]);
    await withServers(
      { servers: { mail: fixture() }, timeout_s: 1 },
      async (call) => {
        assertEquals(
          JSON.parse(await call("mail__confirm")),
          decision === "Allow"
            ? { action: "accept", content: { sure: true, count: 2 } }
            : { action: "decline" },
        );
        // an approval has no words
        assertEquals(JSON.parse(await call("mail__confirm", { words: true })), { action: "decline" });
        assertEquals(person.requests.map(({ prompt }) => prompt), [
          'Server "mail" asks: Delete all? It gets {"sure":true,"count":2}.',
        ]);
      },
      { run: [Deno.execPath()] },
      person,
    );
  }
});

Deno.test("a server asks a person during a call only", async () => {
  const person = new FakeApproval(["Allow"]);
  await withServers(
    { servers: { mail: fixture("asks_without_call") } },
    async (call) => {
      assertEquals(JSON.parse(await call("mail__unasked")), { action: "decline" });
      assertEquals(person.requests, []);
    },
    { run: [Deno.execPath()] },
    person,
  );
});

Deno.test("a server that dies says why, and is started again for the next call, as often as it dies", () =>
  withServers({ servers: { mail: fixture() } }, async (call, _, progress) => {
    for (let death = 1; death <= 2; death++) {
      assertMatch(
        await call("mail__die"),
        /^!Server "mail" did not answer die: the server has ended \(exit code 3\) \(it wrote: It dies of a test/,
      );
      assertEquals(await Promise.all([call("mail__echo", { to: "a" }), call("mail__echo", { to: "b" })]), [
        "a",
        "b",
      ]);
    }
    assertEquals(new Set(progress), new Set(['Connecting to server "mail" again']));
  }));

Deno.test("the last words of a server are reported without the values of its variables", () => {
  const server = { ...fixture(), env: { DEATH: "by a value that is hidden", WORD: "test" } };
  return withServers({ servers: { mail: server } }, async (call) => {
    const found = await call("mail__die");
    assertMatch(found, /\(it wrote: It dies of a test\. \[REDACTED\]\)$/); // a short value is a part of words
  });
});

Deno.test("a server that closes its output and stays fails its calls at once, and is started again", () => {
  const command = ["bash", new URL("../fixtures/mute_mcp_server.sh", import.meta.url).pathname];
  return withServers({ servers: { mute: { command } }, timeout_s: 600 }, async (call) => {
    for (const _ of [1, 2]) {
      assertMatch(
        await call("mute__hello"),
        /^!Server "mute" did not answer hello: the server has closed its output$/,
      );
    }
  }, { run: ["bash"] });
});

Deno.test("a pinned server that is started again with other tools is not called", async () => {
  await using folder = await temporaryFolder();
  const flags = `${folder.path}/flags`;
  await Deno.writeTextFile(flags, "");
  const server = { command: fixture(`flags=${flags}`).command as string[] };
  const run = [Deno.execPath()];
  const pins = await mcp.pins({ servers: { mail: server } }, { ...new TestCoordinator().permissions, run });
  await withServers({ servers: { mail: server }, pins }, async (call) => {
    await call("mail__die");
    assertEquals(await call("mail__echo", { to: "same" }), "same");
    await call("mail__die");
    await Deno.writeTextFile(flags, "with_bcc");
    assertMatch(
      await call("mail__send_mail", { to: "x" }),
      /^!.*not those of the lock any more: tool `send_mail` of `mail` gained parameter `bcc`/,
    );
  });
});

Deno.test("a server and what it has started end with the session", async () => {
  let pid = "";
  await withServers(
    { servers: { mail: fixture() } },
    async (call) => void (pid = await call("mail__children")),
  );
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => ") Z ");
  assertMatch(stat, /\) [ZX] /);
});

Deno.test("pins stop a server whose tools changed, and say what changed", async () => {
  const config = { servers: { mail: fixture() } };
  const run = [Deno.execPath()];
  const pins = await mcp.pins(config, { ...new TestCoordinator().permissions, run });
  assertEquals((pins.mail as JsonObject).send_mail, {
    sha256: ((pins.mail as JsonObject).send_mail as JsonObject).sha256,
    parameters: ["to"],
  });
  await withServers({ ...config, pins }, async (call, { tools }) => {
    assertEquals(await call("mail__send_mail", { to: "ada" }), "Sent to ada.");
    assertEquals(tools.mail__read_note!.risk, "low"); // what it says of itself was seen
    assertEquals(tools.mail__send_mail!.risk, "high");
  });
  const error = await assertRejects(
    () => withServers({ servers: { mail: fixture("with_bcc") }, pins }, () => Promise.resolve()),
    Error,
    "tool `send_mail` of `mail` gained parameter `bcc`",
  );
  assertEquals((error as unknown as JsonObject).code, "module_integrity_mismatch");
});

Deno.test("a server is refused without the grant it needs, or in a wrong form", async () => {
  const refused = async (servers: JsonObject, permissions: JsonObject, message: string) => {
    await assertRejects(() => withServers({ servers }, () => Promise.resolve(), permissions), Error, message);
  };
  await refused({ mail: fixture() }, {}, 'the plan does not let server "mail" start');
  await refused({ mail: { url: "http://127.0.0.1:9/mcp" } }, { net: ["example.com"] }, "does not grant net");
  await refused({ files: { npm: "some-server@1.0.0" } }, {}, "start deno: permissions: { run: [deno] }");
  await refused({ mail: {} }, {}, "must have one of url, command and npm");
  await refused({ mail: { url: "ftp://x" } }, {}, "must be an https:// or http:// URL");
  await refused({ mail: { npm: "server@latest" } }, {}, "must be a package of one version");
  await refused(
    { mail: { url: "http://x", args: ["a"] } },
    {},
    "is for servers with command or npm, and this one has url",
  );
  for (const name of ["a b", "a__b", "a_"]) { // no tool of another server has such a name
    await refused({ [name]: { url: "http://x" } }, {}, "its name must have at most 32 letters");
  }
  await refused(
    { mail: { command: ["nonsense_program"] } },
    { run: true },
    'Cannot connect to server "mail"',
  );
});

Deno.test("server-everything: its tools, resources and prompts", async () => {
  const everything = {
    npm: "@modelcontextprotocol/server-everything@2026.8.31",
    args: ["stdio"],
    permissions: { read: true, env: true, sys: true },
  };
  await withServers({ servers: { everything } }, async (call) => {
    assertMatch(await call("everything__get-sum", { a: 2, b: 3 }), /5/);
    const [, image] = await call("everything__get-tiny-image") as unknown as JsonObject[];
    assertEquals(image?.type, "image");
    const listed = await call("mcp_resources", { server: "everything" });
    const [uri = ""] = /^\S+:\/\/\S+(?=:)/m.exec(listed) ?? [];
    assertStringIncludes(await call("mcp_resources", { server: "everything", uri }), uri);
    assertMatch(
      await call("mcp_resources", { server: "everything", uri: "demo://none" }),
      /^!.*did not answer/,
    );
    assertMatch(await call("mcp_prompts", { server: "everything" }), /^simple-prompt\(\)/m);
    assertMatch(await call("mcp_prompts", { server: "everything", name: "simple-prompt" }), /^user: /);
    assertMatch(await call("mcp_prompts", { server: "other" }), /^!There is no server "other"/);
  }, { run: ["deno"] });
});

/** A published server on the old wire, with exactly the permissions that it needs. */
Deno.test("published servers work in the form npm, within their permissions", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/note.txt`, "From a file.");
  const servers = {
    files: {
      npm: "@modelcontextprotocol/server-filesystem@2026.8.31",
      args: [folder],
      permissions: { read: [folder], env: true, sys: true },
    },
    memory: {
      npm: "@modelcontextprotocol/server-memory@2026.8.31",
      env: { MEMORY_FILE_PATH: `${folder}/memory.json` },
      permissions: { read: [folder], write: [folder], env: true },
    },
  };
  await withServers({ servers }, async (call) => {
    assertStringIncludes(await call("files__read_text_file", { path: `${folder}/note.txt` }), "From a file.");
    assertMatch(await call("files__read_text_file", { path: "/etc/passwd" }), /^!.*denied/i);
    assertMatch(await call("files__write_file", { path: `${folder}/new.txt`, content: "x" }), /^!/); // no write
    const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
    assertStringIncludes(await call("memory__create_entities", { entities }), "Ada");
    assertStringIncludes(await call("memory__search_nodes", { query: "Ada" }), "writes programs");
  }, { run: ["deno"] });
});

Deno.test("tools of a server on the web are called with its headers, within the grant and the limits", () =>
  onWebServer(async (url, requests) => {
    const net = { net: ["127.0.0.1"] };
    const web = { url: `${url}/mcp`, headers: { "x-token": "abc" } };
    await withServers({ servers: { web }, max_result_bytes: 100_000 }, async (call) => {
      assertEquals(await call("web__sum", { a: 1, b: 2 }), "3");
      assertEquals(await call("web__fail"), "!No.");
      assertMatch(await call("web__sum", { a: "one" }), /^!.*(invalid|expected)/i);
      assertMatch(await call("web__big"), /^!Server "web" did not answer big: .*more than 100000 bytes/);
      assertEquals(await call("web__sum", { a: 2, b: 2 }), "4");
      const [block] = await call("web__picture") as unknown as JsonObject[];
      assertEquals(block, {
        type: "image",
        source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
      });
    }, net);
    assertEquals(requests.filter(({ headers }) => headers.get("x-token") !== "abc"), []);
    const moved = { servers: { web: { url: `${url}/moved` } } };
    await assertRejects(() => withServers(moved, () => Promise.resolve(), net), Error, "redirects to");
  }));

Deno.test("a promise that fails while its time is over already fails the call only", async () => {
  const deadline = new Deadline(60, AbortSignal.abort(new Error("cancelled")));
  const failing = Promise.reject(new Error("not handled"));
  await assertRejects(() => deadline.orEnd(failing), Error, "cancelled");
  deadline.end();
});
