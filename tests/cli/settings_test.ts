import { readArguments, UsageError } from "../../src/cli/arguments.ts";
import { OUTSIDE_SETTINGS } from "../../src/policy/settings.ts";
import { openSettingsStore } from "../../src/settings/settings.ts";
import { readSettings, withSettings } from "../../src/cli/settings.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { systemIo } from "../../src/cli/terminal/io.ts";
import { fakeIo } from "../support/io.ts";
import { temporaryFolder } from "../support/folder.ts";

const FLAGS = withSettings([], ["host", "port", "plans", "store", "frozen", "behind-proxy"]);
const EMPTY = new URL("../fixtures/amplifier/", import.meta.url);

function read(words: readonly string[], env: Record<string, string> = {}) {
  return readSettings(readArguments(words, FLAGS), fakeIo({ env, cwd: EMPTY }));
}

Deno.test("readSettings() returns the default policy without flags and variables", async () => {
  const io = fakeIo({ cwd: EMPTY });
  const settings = await readSettings(readArguments([], FLAGS), io, { plans: "all" });
  const { policy, plans, api_keys, warnings } = settings;
  assertEquals([policy.store, policy.listen.host, policy.listen.port, api_keys, warnings], [
    "auto",
    "127.0.0.1",
    8484,
    [],
    [],
  ]);
  assertEquals(plans?.url.href, new URL("plans/", EMPTY).href);
});

Deno.test("readSettings() prefers flags to variables, and short names of variables to long ones", async () => {
  const env = { PREAMP_PORT: "1", PREAMP_LISTEN_HOST: "::1", PREAMP_LIMITS_MAX_COST_USD: "2" };
  const { policy } = await read(
    ["--limits.max_cost_usd", "1", "--modules.allow", "https://a.example/,data:"],
    env,
  );
  assertEquals([policy.listen.port, policy.listen.host, policy.limits.max_cost_usd], [1, "::1", "1"]);
  assertEquals(policy.modules.allow, ["https://a.example/", "data:"]);
  assertEquals((await read(["--listen.port", "3"], env)).policy.listen.port, 3);
});

Deno.test("readSettings() takes --frozen as a flag without a value, a variable or a setting", async () => {
  const frozen = async (words: readonly string[], env: Record<string, string> = {}) =>
    (await read(words, env)).policy.modules.frozen;
  assertEquals(await frozen([]), false);
  assertEquals(await frozen(["--frozen"]), true);
  assertEquals(await frozen([], { PREAMP_MODULES_FROZEN: "true" }), true);
  assertEquals(await frozen(["--modules.frozen", "true"]), true);
});

Deno.test("readSettings() takes the addresses of trusted proxies as the value of --behind-proxy", async () => {
  const listen = async (...words: string[]) => (await read(words)).policy.listen;
  assertEquals((await listen("--behind-proxy", "10.0.0.0/8, ::1")).trusted_proxies, ["10.0.0.0/8", "::1"]);
  assertEquals((await listen("--listen.trusted_proxies", "127.0.0.1")).trusted_proxies, ["127.0.0.1"]);
  for (const flag of ["--behind-proxy", "--listen.trusted_proxies"]) {
    const error = await assertRejects(() => read([`${flag}=10.0.0.0/8,proxy`]), UsageError);
    assertEquals(
      error.message,
      `Cannot use ${flag}: Cannot read an address: must be an IP address, or a block such as 10.0.0.0/8: received "proxy"`,
    );
  }
});

Deno.test("readSettings() refuses a folder in modules.inline: what is vendored is trusted by its digest", async () => {
  const remedy = "preamp plan vendor --inline writes into the plan which modules are";
  for (const entry of ["./own/", "../up", "/abs/", "file:///abs/"]) {
    const error = await assertRejects(() => read(["--modules.inline", entry]), UsageError);
    assertStringIncludes(error.message, remedy);
  }
  const { policy } = await read(["--modules.inline", "https://a.example/,data:,file:///abs/one.ts"]);
  assertEquals(policy.modules.inline, ["https://a.example/", "data:", "file:///abs/one.ts"]);
  await assertRejects(() => read(["--modules.allow", "./own/"]), Error, "must be an https:// or http:// URL");
});

Deno.test("readSettings() takes PORT and HOST of a platform for a server, after its own variables", async () => {
  const listen = async (env: Record<string, string>, serves = true) =>
    (await readSettings(readArguments([], FLAGS), fakeIo({ env, cwd: EMPTY }), { serves })).policy.listen;
  const at = async (env: Record<string, string>, serves = true) => {
    const { host, port } = await listen(env, serves);
    return `${host}:${port}`;
  };
  assertEquals(await at({ PORT: "8080" }), "127.0.0.1:8080");
  assertEquals(await at({ PORT: "8080", HOST: "0.0.0.0" }), "0.0.0.0:8080");
  assertEquals(await at({ HOST: "laptop" }), "127.0.0.1:8484");
  assertEquals(await at({ PORT: "8080", PREAMP_PORT: "1" }), "127.0.0.1:1");
  assertEquals(await at({ PORT: "8080", HOST: "0.0.0.0" }, false), "127.0.0.1:8484");
  const error = await assertRejects(() => listen({ PORT: "tcp" }), UsageError);
  assertStringIncludes(error.message, "Cannot use PORT:");
});

Deno.test("readSettings() reads retention.days under its former name, with a warning", async () => {
  await using temporary = await temporaryFolder();
  const config = `${temporary.path}/preamp.yaml`;
  await Deno.writeTextFile(config, "retention: {log_days: 7}");
  const warning = "The setting retention.log_days is called retention.days now, and covers all content";
  for (
    const [words, env, days, warnings] of [
      [["--config", config], {}, 7, [warning]],
      [["--config", config, "--retention.days", "3"], {}, 3, [warning]],
      [[], { PREAMP_RETENTION_LOG_DAYS: "9" }, 9, [warning]],
      [[], { PREAMP_RETENTION_DAYS: "9" }, 9, []],
    ] as const
  ) {
    const settings = await read(words, env);
    assertEquals([settings.policy.retention.days, settings.warnings], [days, warnings]);
  }
  await Deno.writeTextFile(config, "retention: {log_days: none}");
  await assertRejects(() => read(["--config", config]), Error, "retention.log_days");
});

Deno.test("readSettings() hashes keys and warns of unknown variables", async () => {
  const { policy, api_keys, warnings } = await read([], {
    PREAMP_API_KEYS: " k1 ,k2,",
    PREAMP_PROT: "1",
    PREAMP_MINE: "x",
  });
  assertEquals([api_keys, policy.auth.keys.length], [["k1", "k2"], 2]);
  assertMatch(policy.auth.keys[0]?.sha256 ?? "", /^[0-9a-f]{64}$/);
  assertEquals(warnings, [
    "The variable PREAMP_PROT is ignored: did you mean PREAMP_PORT?",
    "The variable PREAMP_MINE is ignored: there is no such setting; preamp help serve lists all settings",
  ]);
});

Deno.test("readSettings() does not warn of variables of settings", async () => {
  const names = OUTSIDE_SETTINGS.map(({ variable, default: value }) => [variable, String(value)]);
  const own = {
    PREAMP_API_KEYS: "k",
    PREAMP_HOME: "/h",
    PREAMP_PORT: "1",
  };
  const { warnings } = await read([], { ...Object.fromEntries(names), ...own });
  assertEquals(warnings, []);
});

Deno.test("readSettings() warns of variables that mean nothing to the command", async () => {
  const env = { PREAMP_NO_AUTH: "1", PREAMP_API_KEY: "k", PREAMP_COLOUR: "x" };
  const ignored = (name: string, advice: string) => `The variable ${name} is ignored: ${advice}`;
  const others = [
    ignored("PREAMP_API_KEY", "did you mean PREAMP_API_KEYS?"),
    ignored("PREAMP_COLOUR", "there is no such setting; preamp help serve lists all settings"),
  ];
  assertEquals((await read([], env)).warnings, [
    ignored("PREAMP_NO_AUTH", "only preamp serve reads it"),
    ...others,
  ]);
  const io = fakeIo({ env, cwd: EMPTY });
  assertEquals((await readSettings(readArguments([], FLAGS), io, { serves: true })).warnings, others);
});

for (
  const [words, env, name] of [
    [["--port", "x"], {}, "--port"],
    [["--port="], {}, "--port"],
    [["--host", ""], {}, "--host"],
    [["--limits.max_iterations", "0"], {}, "--limits.max_iterations"],
    [["--modules.frozen", "perhaps"], {}, "--modules.frozen"],
    [[], { PREAMP_RATES_RUNS_PER_MINUTE: "-1" }, "PREAMP_RATES_RUNS_PER_MINUTE"],
    [[], { PREAMP_PORT: "70000" }, "PREAMP_PORT"],
    [["--config", "none.yaml"], {}, "no such file"],
    [[], { PREAMP_CONFIG: "none.yaml" }, "no such file"],
  ] as const
) {
  Deno.test(`readSettings() names ${name} when ${JSON.stringify([words, env])} cannot be used`, async () => {
    const error = await assertRejects(() => read(words, env));
    assertEquals(error.name, "UsageError");
    assertStringIncludes(error.message, name);
  });
}

Deno.test("readSettings() reads the variables of settings where the process may not list its variables", async () => {
  const io = { ...fakeIo({ env: { PREAMP_LIMITS_MAX_COST_USD: "2" }, cwd: EMPTY }), variables: () => null };
  const { policy, warnings } = await readSettings(readArguments([], FLAGS), io);
  assertEquals(policy.limits.max_cost_usd, "2");
  assertEquals(warnings.map((text) => text.slice(0, 43)), ["This process may not list its variables: se"]);
});

Deno.test(
  "a variable that the process may not read counts as not set",
  { permissions: { env: ["PREAMP_API_KEYS"], read: true } },
  async () => {
    const { env, variables } = systemIo();
    assertEquals([env("HOME"), env("PREAMP_API_KEYS"), variables()], [undefined, undefined, null]);
    const io = { ...fakeIo({ cwd: EMPTY }), env, variables };
    assertEquals((await readSettings(readArguments([], FLAGS), io)).policy.listen.port, 8484);
  },
);

Deno.test("openSettingsStore() keeps runs in memory, with a warning, where the home folder is on a read-only file system", async () => {
  const settings = await read([], { PREAMP_HOME: "/somewhere/" });
  const { mkdir } = Deno;
  Deno.mkdir = () =>
    Promise.reject(Object.assign(new Error("Read-only file system (os error 30)"), { code: "EROFS" }));
  try {
    const { store, warning } = await openSettingsStore(settings, true);
    assertEquals(store, undefined);
    assertStringIncludes(String(warning), "Read-only file system");
  } finally {
    Deno.mkdir = mkdir;
  }
});

Deno.test("readSettings() takes the workspace from a flag, a variable or the file, each relative to its place", async () => {
  await using folder = await temporaryFolder();
  const cwd = new URL(`file://${folder.path}/`);
  for (const name of ["conf", "conf/a", "a", "b"]) await Deno.mkdir(`${folder.path}/${name}`);
  await Deno.writeTextFile(`${folder.path}/conf/preamp.yaml`, "workspace: a\n");
  const flags = withSettings([], ["workspace"]);
  const workspace = async (words: readonly string[], env: Record<string, string> = {}) =>
    (await readSettings(readArguments(words, flags), fakeIo({ env, cwd }))).workspace?.href;
  assertEquals(await workspace([]), undefined);
  assertEquals(await workspace(["--config", "conf/preamp.yaml"]), new URL("conf/a/", cwd).href);
  assertEquals(await workspace([], { PREAMP_WORKSPACE: "b" }), new URL("b/", cwd).href);
  assertEquals(await workspace(["--workspace", "a/"], { PREAMP_WORKSPACE: "b" }), new URL("a/", cwd).href);
  const error = await assertRejects(() => workspace(["--workspace", "nope"]), UsageError);
  assertEquals(error.message, 'Cannot use workspace "nope": there is no such folder');
});
