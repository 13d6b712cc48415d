/**
 * Tests of effective permissions in this process: queried from Deno, and tried in a worker with exactly these
 * permissions.
 */
import { pathToFileURL } from "node:url";
import {
  displayOf,
  effectiveGrantOf,
  type GrantingPlan,
  grantOf,
  grantPaths,
} from "../../src/app/module_permissions.ts";
import { compilePlan } from "../../src/plan/compile.ts";
import { noPermissions } from "../../src/sdk/contracts.ts";
import { authorise, authoriseWithin } from "../../src/policy/authorise.ts";
import {
  effectiveGrant,
  type GuestPermissions,
  pathsBeside,
} from "../../src/policy/effective_permissions.ts";
import type { Permissions } from "../../src/sdk/contracts.ts";
import type { ModuleSpec } from "../../src/sdk/plan.ts";
import { assert, assertEquals } from "../assert.ts";
import { refusal } from "../support/plans.ts";
import { BUILTINS, policyWith } from "../support/policies.ts";
import { testWithUnitPermissions } from "../support/permissions.ts";
import { temporaryFolder } from "../support/folder.ts";

/** A folder with a file, a folder with a file beside it, and links; its real path. */
async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  for (const name of ["plan", "plan/data", "other"]) await Deno.mkdir(`${folder}/${name}`);
  for (const name of ["plan/data", "other"]) await Deno.writeTextFile(`${folder}/${name}/f`, name);
  await Deno.symlink(`${folder}/other`, `${folder}/plan/link`);
  await Deno.symlink(`${folder}/nothing`, `${folder}/plan/dangling`);
  await use(folder);
}

interface Judged extends GrantingPlan {
  spec: ModuleSpec;
}

/** One tool with a grant, in an operator's plan of a folder, or in a caller's plan under a policy. */
async function judge(
  permissions: Permissions,
  where: { folder: string } | { max: Permissions },
): Promise<Judged> {
  const origin = "max" in where ? "caller" : "operator";
  const base = "max" in where ? {} : { base_url: pathToFileURL(`${where.folder}/plan/plan.yaml`).href };
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{ module: "tool-filesystem", permissions: JSON.parse(JSON.stringify(permissions)) }],
  }, { origin, ...base });
  const max = { ...noPermissions(), ..."max" in where ? where.max : {} };
  const grants = authorise(compiled, {
    origin,
    policy: policyWith({ permissions: { max } }),
    builtins: BUILTINS,
    paths: grantPaths(origin, base.base_url),
  });
  return { compiled, grants, origin, ...base, spec: compiled.plan.tools[0]! }; // the one above
}

/** Runs expressions in a worker with a grant; resolves to the value of each, or the name of its error. */
async function tryIn(permissions: GuestPermissions, attempts: readonly string[]): Promise<unknown[]> {
  const code = `const answers = [];
    for (const attempt of [${attempts.map((attempt) => `async () => ${attempt}`).join(", ")}]) {
      try { answers.push(await attempt() ?? null); } catch (error) { answers.push(error.name); }
    }
    postMessage(answers);`;
  const worker = new Worker(dataUrl(code), {
    type: "module",
    deno: { permissions },
  });
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message));
      };
    });
  } finally {
    worker.terminate();
  }
}

Deno.test("grantOf() lets a worker access what is granted, and nothing beside it", () =>
  withFolder(async (folder) => {
    const listeners = [1, 2].map(() => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
    const [open, shut] = listeners.map(({ addr }) => (addr as Deno.NetAddr).port); // TCP has a port
    const variables = ["PREAMP_TEST_OPEN", "PREAMP_TEST_SHUT", "PREAMP_TESTS_ALL_X"];
    for (const name of variables) Deno.env.set(name, "set");
    try {
      const judged = await judge({
        read: ["data/", "./link"],
        write: ["data/new/deeper"],
        net: [`127.0.0.1:${open}`],
        env: ["PREAMP_TEST_OPEN", "PREAMP_TESTS_*"],
        run: [],
      }, { folder });
      const permissions = grantOf(judged.spec, judged);
      const plan = `${folder}/plan`;
      assertEquals(permissions, {
        net: [`127.0.0.1:${open}`],
        read: [`${plan}/data`, `${folder}/other`],
        write: [`${plan}/data/new/deeper`],
        env: ["PREAMP_TEST_OPEN", "PREAMP_TESTS_*"],
        run: false,
        sys: false,
        ffi: false,
        import: false,
      });
      const read = (path: string) => `Deno.readTextFile(${JSON.stringify(`${folder}/${path}`)})`;
      const connect = (port: number | undefined) =>
        `Deno.connect({hostname: "127.0.0.1", port: ${port}}).then((socket) => socket.close())`;
      const answers = await tryIn(permissions, [
        read("plan/data/f"),
        read("other/f"),
        read("plan/data/../data/f"),
        read("plan/link/f"), // by the link itself: the grant names the folder
        read("plan/plan.yaml"),
        read("plan/data/../../nothing"),
        `Deno.mkdir(${JSON.stringify(`${plan}/data/new/deeper`)}, {recursive: true})`,
        `Deno.writeTextFile(${JSON.stringify(`${plan}/data/f`)}, "")`,
        connect(open),
        connect(shut),
        ...variables.map((name) => `Deno.env.get("${name}")`),
        `Deno.env.toObject()`,
        `Deno.hostname()`,
        `new Deno.Command("true").output()`,
        `Deno.dlopen("/nothing.so", {})`,
      ]);
      const no = "NotCapable";
      assertEquals(answers, [
        ...["plan/data", "other", "plan/data", no, no, no],
        ...[null, no],
        ...[null, no],
        ...["set", no, "set", no],
        ...[no, no, no],
      ]);
    } finally {
      for (const listener of listeners) listener.close();
      for (const name of variables) Deno.env.delete(name);
    }
  }));

Deno.test("a worker without grants can access nothing", () =>
  withFolder(async (folder) => {
    const judged = await judge({}, { folder });
    const permissions = grantOf(judged.spec, judged);
    assertEquals(new Set(Object.values(permissions)), new Set([false]));
    const kinds = ["net", "read", "write", "env", "run", "sys", "ffi", "import"];
    const answers = await tryIn(
      permissions,
      kinds.map((name) => `Deno.permissions.querySync({name: "${name}"}).state`),
    );
    assertEquals(answers.includes("granted"), false);
  }));

testWithUnitPermissions(
  "effectiveGrantOf() drops entries that this process lacks or that cannot be determined",
  () =>
    withFolder(async (folder) => {
      const judged = await judge({ net: true, read: ["dangling/x", "data/f/below"], sys: ["hostname"] }, {
        folder,
      });
      const { granted, dropped } = effectiveGrantOf(judged.spec, judged);
      assertEquals(new Set(Object.values(granted)), new Set([false]));
      assertEquals(dropped, [
        { permission: "net", entry: true, by: "process" },
        { permission: "read", entry: "dangling/x", by: "process" },
        { permission: "read", entry: "data/f/below", by: "process" },
        { permission: "sys", entry: "hostname", by: "process" },
      ]);
    }),
);

Deno.test("authorise() accepts a caller's narrower entries, and refuses a link that leads outside of the policy's paths", () =>
  withFolder(async (folder) => {
    const plan = `${folder}/plan`;
    const max = { read: [plan], net: ["127.0.0.1", "*.example.com"], env: ["AWS_*"] };
    const judged = await judge({ read: [`${plan}/./data/f`], net: ["127.0.0.1:1"], env: ["AWS_X"] }, { max });
    const { read, net, env } = grantOf(judged.spec, judged);
    assertEquals({ read, net, env }, { read: [`${plan}/data/f`], net: ["127.0.0.1:1"], env: ["AWS_X"] });
    const asked = { read: [`${plan}/link/f`, `${plan}/../other`], net: ["example.org"] };
    const error = await refusal(() => judge(asked, { max }));
    assertEquals(error.code, "policy_refused");
    assertEquals(error.details.map(({ path }) => path), [
      "tools[0].permissions.net",
      "tools[0].permissions.read",
      "tools[0].permissions.read",
    ]);
  }));

Deno.test("grantOf() applies the policy when a link changes after the plan was authorised", () =>
  withFolder(async (folder) => {
    const plan = `${folder}/plan`;
    await Deno.remove(`${plan}/link`);
    await Deno.symlink(`${plan}/data`, `${plan}/link`);
    const judged = await judge({ read: [`${plan}/link`] }, { max: { read: [plan] } });
    assertEquals(grantOf(judged.spec, judged).read, [`${plan}/data`]);
    await Deno.remove(`${plan}/link`);
    await Deno.symlink(`${folder}/other`, `${plan}/link`);
    const { granted, dropped } = effectiveGrantOf(judged.spec, judged);
    assertEquals([granted.read, dropped], [false, [{
      permission: "read",
      entry: `${plan}/link`,
      by: "policy",
    }]]);
  }));

Deno.test("authorise() never gives a caller run or ffi, whatever the policy says", async () => {
  for (const [name, entry] of [["run", "sh"], ["ffi", "/lib"]] as const) {
    for (const asked of [true, [entry]]) {
      const error = await refusal(() => judge({ [name]: asked }, { max: { run: true, ffi: true } }));
      assertEquals(error.details.map(({ path, hint }) => [path, hint]), [
        [`tools[0].permissions.${name}`, "leave it out: a plan in a request never gets run or ffi"],
      ]);
    }
  }
});

Deno.test("authoriseWithin() refuses a sub-agent a link that leads outside of its parent's paths", () =>
  withFolder(async (folder) => {
    const parent = await judge({ read: ["data"] }, { folder });
    const options = {
      origin: "operator",
      policy: policyWith({}),
      builtins: BUILTINS,
      paths: grantPaths("operator", parent.base_url),
    } as const;
    const within = await judge({ read: ["./data/f", `${folder}/plan/link/../data/`] }, { folder });
    authoriseWithin(within.compiled, options, parent.grants);
    await Deno.symlink(`${folder}/other`, `${folder}/plan/data/out`);
    const beyond = await judge({ read: ["data/out"] }, { folder });
    const error = await refusal(() => authoriseWithin(beyond.compiled, options, parent.grants));
    assertEquals(error.details.map(({ path }) => path), ["tools[0].permissions.read"]);
  }));

Deno.test("displayOf() displays paths below the plan's folder relative to it", () =>
  withFolder(async (folder) => {
    const judged = await judge({ read: ["data", ".", "link"] }, { folder });
    const display = displayOf(judged);
    const { read } = grantOf(judged.spec, judged);
    assertEquals((read as string[]).map((path) => display("read", path)), [".", `${folder}/other`]);
    assertEquals(display("write", `${folder}/plan/data/f`), "./data/f");
    assertEquals(display("ffi", `${folder}/planet`), `${folder}/planet`);
    assertEquals([display("run", `${folder}/plan/x`), display("read", true)], [`${folder}/plan/x`, true]);
  }));

Deno.test("Deno starts a worker with grantOf() of every form of entry", async () => {
  const hosts = [
    "a.com",
    "A.com.:0443",
    "*.a_b.com:1",
    "10.1.2.3/8",
    "0.0.0.0/0:80",
    "[0::1]",
    "[::ffff:1.2.3.4]:8",
    "-x",
  ];
  const sys = [
    "hostname",
    "osRelease",
    "osUptime",
    "loadavg",
    "networkInterfaces",
    "systemMemoryInfo",
    "uid",
    "gid",
  ];
  const more = [
    "username",
    "cpus",
    "homedir",
    "getegid",
    "statfs",
    "getPriority",
    "setPriority",
    "userInfo",
    "inspector",
  ];
  const permissions = {
    net: hosts,
    import: hosts,
    read: ["/", "a b", "x,y", "../*"],
    write: ["~x"],
    ffi: ["./x.so"],
    env: ["A", "A*B", "AWS_**"],
    run: ["git", "/bin/sh", "no such program"],
    sys: [...sys, ...more, "setuid"],
  };
  const plan = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{ module: "tool-filesystem", permissions }],
  }, { origin: "operator", base_url: "file:///plans/a.yaml" });
  const { granted } = effectiveGrant({
    plan: plan.plan.tools[0]?.permissions ?? {},
    process: () => true,
    resolve: pathsBeside(() => "/plans", (path) => path),
  });
  assertEquals(Object.values(granted).every(Array.isArray), true);
  const code = `const worker = new Worker("data:text/javascript,postMessage(1)", {
      type: "module",
      deno: { permissions: ${JSON.stringify(granted)} },
    });
    worker.onmessage = () => { console.log("started"); worker.terminate(); };`;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "--no-prompt", "--no-config", "--unstable-worker-options", dataUrl(code)],
  }).output();
  assertEquals(new TextDecoder().decode(stdout), "started\n", new TextDecoder().decode(stderr));
});

function dataUrl(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

/**
 * Returns the entries of `asked` that a process with these flags has: `permission entry`, or the permission
 * alone for all of it.
 */
async function heldWith(flags: readonly string[], asked: readonly string[]): Promise<string[]> {
  const own = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);
  const code = `import { grantedToProcess } from ${own("app/module_permissions.ts")};
    import { parseEntry } from ${own("plan/permissions/permission_entry.ts")};
    console.log(JSON.stringify(${JSON.stringify(asked)}.filter((one) => {
      const [permission, entry] = one.split(" ");
      return grantedToProcess(permission, entry === undefined ? "all" : parseEntry(permission, entry));
    })));`;
  const main = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(main, code);
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--no-config", "--no-check", ...flags, main],
    }).output();
    const text = new TextDecoder().decode(stdout);
    assert(text !== "", new TextDecoder().decode(stderr));
    return JSON.parse(text) as string[]; // what the code above prints
  } finally {
    await Deno.remove(main);
  }
}

Deno.test("grantedToProcess() finds the entries of flags, and nothing that Deno cannot be queried for", () =>
  withFolder(async (folder) => {
    const held = [
      "net a.com",
      "net a.com:80",
      "net b.com:443",
      "net x.w.com",
      "net w.com",
      "net 10.1.2.3",
      "net [::1]:80",
      "env ONE",
      "env AWS_X",
      "env AWS_*",
      "env AWS_X*",
      `read ${folder}/plan/data`,
      `read ${folder}/other/f`,
      "sys hostname",
      "run git",
      "import c.com:443",
    ];
    const not = [
      "b.com",
      "b.com:80",
      "*.w.com",
      "*.x.w.com",
      "10.0.0.0/8",
      "10.1.0.0/16",
      "11.0.0.1",
      "[::2]",
    ];
    const flags = [
      "--allow-net=a.com,b.com:443,*.w.com,10.0.0.0/8,[::1]:80",
      "--allow-env=ONE,AWS_*",
      `--allow-read=${folder}/plan,${folder}/other`,
      `--deny-read=${folder}/other/secret`,
      "--allow-sys=hostname",
      "--allow-run=git",
      "--allow-import=c.com:443",
    ];
    const others = [
      ...["net", "read", "write", "env", "run", "sys", "ffi", "import"],
      ...[
        "env AW*",
        "env *",
        "env ON",
        "env ONE*",
        "sys uid",
        "run sh",
        "import c.com",
        "ffi /x",
        "write /x",
      ],
      ...[`read ${folder}`, `read ${folder}/planet`, `read ${folder}/other`],
    ];
    assertEquals(await heldWith(flags, [...held, ...not.map((host) => `net ${host}`), ...others]), held);
  }));

Deno.test("grantedToProcess() grants neither the whole nor entries that may include a denied part", async () => {
  const flags = ["--allow-all", "--deny-net=x.org:80", "--deny-env=AWS_S", "--deny-read=/etc/passwd"];
  const held = [
    "write",
    "sys",
    "ffi",
    "run",
    "net x.org:443",
    "env AWS_X",
    "read /etc/hosts",
    "write /etc",
    "net 10.0.0.1:1",
  ];
  const not = [
    "net",
    "env",
    "read",
    "net x.org",
    "net x.org:80",
    "net *.org",
    "net 10.0.0.0/8",
    "env AWS_*",
    "env AWS_S",
  ];
  assertEquals(await heldWith(flags, [...held, ...not, "read /etc", "read /etc/passwd"]), held);
  const open = [
    "net",
    "net *.org",
    "net 10.0.0.0/8",
    "env",
    "env *",
    "env A*",
    "sys",
    "import",
    "import *.org",
  ];
  assertEquals(await heldWith(["--allow-all"], open), open);
});
