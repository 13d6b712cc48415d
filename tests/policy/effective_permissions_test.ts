/**
 * The arithmetic of permissions against accesses: a host with a port, a file, a variable. What an entry lets
 * through is said here a second time, in another way than the code says it.
 */
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { PERMISSION_KINDS, type PermissionKind } from "../../src/sdk/plan.ts";
import type { DroppedEntry } from "../../src/plan/permissions/permission_block.ts";
import { noPermissions } from "../../src/sdk/contracts.ts";
import { entryText } from "../../src/plan/permissions/permission_entry.ts";
import { effectiveGrant, type GrantCheck, pathsBeside } from "../../src/policy/effective_permissions.ts";
import { excessPermissions } from "../../src/policy/refused_permissions.ts";
import type { Permissions } from "../../src/sdk/contracts.ts";
import { assert, assertEquals } from "../assert.ts";
import fc from "fast-check";

/** A file system: every link with its target, and the existing folders. */
const LINKS: Readonly<Record<string, string>> = {
  "/srv/plan/out": "/etc",
  "/srv/data/up": "/srv",
  "/var/tmp": "/tmp",
};
const THERE = new Set([
  "/",
  "/srv",
  "/srv/plan",
  "/srv/plan/data",
  "/srv",
  "/srv/data",
  "/etc",
  "/tmp",
  "/var",
]);
const PLAN_FOLDER = "/srv/plan";

/** Resolves the links of an absolute path. */
function followed(path: string): string {
  for (const [link, target] of Object.entries(LINKS)) {
    if (path === link || path.startsWith(`${link}/`)) return followed(`${target}${path.slice(link.length)}`);
  }
  return path;
}

function realPath(path: string): string | undefined {
  const real = followed(path);
  if (path === "/locked" || path.startsWith("/locked/")) throw new Deno.errors.NotCapable("no");
  return THERE.has(real) ? real : undefined;
}

const resolve = pathsBeside(() => PLAN_FOLDER, realPath);
const everything: GrantCheck = () => true;

/** Accesses by permission. Files have their real paths. */
const ACCESSES: Readonly<Record<PermissionKind, readonly string[]>> = {
  net: hosts(),
  import: hosts(),
  read: files(),
  write: files(),
  ffi: files(),
  env: ["A", "AWS", "AWS_", "AWS_REGION", "AWS_KEY", "aws_key", "B", "A*B"],
  run: ["git", "gi", "sh", "/bin/sh"],
  sys: ["hostname", "uid", "cpus"],
};

function hosts(): string[] {
  const names = [
    "example.com",
    "a.example.com",
    "b.a.example.com",
    "evilexample.com",
    "other.org",
    "localhost",
  ];
  const addresses = ["10.0.0.1", "10.1.2.3", "10.255.0.1", "11.0.0.1", "127.0.0.1", "::1", "::2", "fe80::1"];
  return [...names, ...addresses].flatMap((host) => [80, 443, 8443].map((port) => `${host} ${port}`));
}

function files(): string[] {
  const folders = [
    "/srv/plan/data",
    "/srv/plan/data2",
    "/srv",
    "/srv",
    "/srv/data",
    "/etc",
    "/tmp",
    "",
    "/SRV/data",
  ];
  return folders.flatMap((folder) => [`${folder}/f`, `${folder}/new/f`]);
}

/** Returns whether an entry allows an access by Deno's rules. */
function lets(permission: PermissionKind, entry: string, access: string): boolean {
  switch (permission) {
    case "net":
    case "import":
      return reaches(entry, access);
    case "read":
    case "write":
    case "ffi": {
      const url = new URL(entry, `file://${PLAN_FOLDER}/`); // normalises dots and slashes independently
      const folder = followed(url.pathname.replaceAll(/\/+/g, "/").replace(/(.)\/$/, "$1"));
      return folder === "/" || access === folder || access.startsWith(`${folder}/`);
    }
    case "env":
      return entry.endsWith("*") ? access.startsWith(entry.slice(0, -1)) : access === entry;
    default:
      return access === entry;
  }
}

function reaches(entry: string, access: string): boolean {
  const [host = "", port] = access.split(" ");
  const [, rawName = "", wantedPort] = /^(\[.*\]|[^:]*)(?::([0-9]+))?$/.exec(entry.toLowerCase()) ?? [];
  if (wantedPort !== undefined && Number(wantedPort) !== Number(port)) return false;
  const name = rawName.replace(/\.$/, "");
  const addresses = new BlockList();
  if (name.startsWith("[")) {
    addresses.addAddress(name.slice(1, -1), "ipv6");
    return isIPv6(host) ? addresses.check(host, "ipv6") : isIPv4(host) && addresses.check(host);
  }
  if (name.includes("/")) {
    addresses.addSubnet(name.split("/")[0]!, Number(name.split("/")[1]));
    return isIPv4(host) && addresses.check(host);
  }
  return name.startsWith("*.") ? `.${host}`.endsWith(name.slice(1)) : name === host;
}

function allows(block: Permissions, permission: PermissionKind, access: string): boolean {
  const value = block[permission] ?? false;
  return Array.isArray(value) ? value.some((entry) => lets(permission, entry, access)) : value;
}

const port = fc.constantFrom("", ":80", ":443", ":0443");
const host = fc.constantFrom(
  "example.com",
  "EXAMPLE.com.",
  "a.example.com",
  "b.a.example.com",
  "*.example.com",
  "*.A.example.com",
  "*.com",
  "other.org",
  "localhost",
  "10.0.0.0/8",
  "10.1.2.3/16",
  "10.1.2.3",
  "10.0.0.0/9",
  "0.0.0.0/0",
  "127.0.0.1/32",
  "127.0.0.1",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:10.1.2.3]",
  "[fe80::1]",
);
const path = fc.constantFrom(
  "data",
  "./data/",
  "data/../data//new",
  "data2",
  ".",
  "..",
  "../plan/data/.",
  "out",
  "out/new",
  "out/../data",
  "/",
  "/srv",
  "/srv",
  "/srv/data",
  "/srv/data/up",
  "/SRV/data",
  "/etc",
  "/etc/../tmp",
  "/var/tmp/new",
  "/tmp",
  "/srv/../../etc",
);
const netEntry = fc.tuple(host, port).map(([name, at]) => name + at);
const ENTRY: Readonly<Record<PermissionKind, fc.Arbitrary<string>>> = {
  net: netEntry,
  import: netEntry,
  read: path,
  write: path,
  ffi: path,
  env: fc.constantFrom("A", "A*", "AWS_*", "AWS_REGION", "AWS_K*", "*", "A*B", "aws_key", "B"),
  run: fc.constantFrom("git", "sh", "/bin/sh"),
  sys: fc.constantFrom("hostname", "uid", "cpus"),
};

function blocks(entry: Readonly<Record<PermissionKind, fc.Arbitrary<string>>>): fc.Arbitrary<Permissions> {
  const value = (name: PermissionKind) =>
    fc.oneof(
      { weight: 1, arbitrary: fc.boolean() },
      { weight: 4, arbitrary: fc.array(entry[name], { maxLength: 3 }) },
    );
  return fc.record(Object.fromEntries(PERMISSION_KINDS.map((name) => [name, value(name)])), {
    requiredKeys: [],
  });
}

const block = blocks(ENTRY);
const WHOLE: Permissions = Object.fromEntries(PERMISSION_KINDS.map((name) => [name, true]));

/**
 * A process with the permissions of a block: it has an entry if it allows every access that the entry allows.
 */
function having(process: Permissions): GrantCheck {
  return (permission, entry) =>
    process[permission] === true ||
    entry !== "all" && ACCESSES[permission].every((access) =>
        !lets(permission, entryText(entry), access) || allows(process, permission, access)
      );
}

function grant(plan: Permissions, max?: Permissions, process = everything) {
  return effectiveGrant({
    plan,
    ...(max ? { policy: max } : {}),
    process,
    resolve,
    resolvePolicy: resolve,
  });
}

function sorted(permissions: Permissions): Permissions {
  return Object.fromEntries(
    Object.entries(permissions).map((
      [name, value],
    ) => [name, Array.isArray(value) ? value.toSorted() : value]),
  );
}

Deno.test("effectiveGrant() allows only what plan, policy and process allow, and loses nothing that the process has", () => {
  let let_through = 0;
  let stopped = 0;
  fc.assert(
    fc.property(block, block, fc.oneof(block, fc.constant(WHOLE)), (plan, max, process) => {
      const { granted } = grant(plan, max, having(process));
      const { granted: ofWhole } = grant(plan, max);
      for (const permission of PERMISSION_KINDS) {
        for (const access of ACCESSES[permission]) {
          const both = allows(plan, permission, access) && allows(max, permission, access);
          assertEquals(allows(ofWhole, permission, access), both, `${permission} ${access}`);
          if (!allows(granted, permission, access)) {
            stopped++;
            continue;
          }
          let_through++;
          assert(both && allows(process, permission, access), `${permission} ${access}`);
        }
      }
    }),
    { numRuns: 500 },
  );
  assert(let_through > 1000 && stopped > 1000, `${let_through} let through, ${stopped} stopped`);
});

Deno.test("effectiveGrant() of an operator's plan is what plan and process both allow", () => {
  fc.assert(fc.property(block, block, (plan, process) => {
    const { granted, dropped } = grant(plan, undefined, having(process));
    for (const permission of PERMISSION_KINDS) {
      for (const access of ACCESSES[permission].filter((one) => allows(granted, permission, one))) {
        assert(allows(plan, permission, access) && allows(process, permission, access));
      }
      const given = plan[permission] ?? false;
      if (!Array.isArray(given)) continue;
      for (
        const entry of given.filter((one) =>
          !dropped.some((drop) => drop.permission === permission && drop.entry === one)
        )
      ) {
        for (const access of ACCESSES[permission].filter((one) => lets(permission, entry, one))) {
          assert(allows(granted, permission, access), `${permission} ${entry} ${access}`); // every loss is reported
        }
      }
    }
  }));
});

Deno.test("effectiveGrant() has all eight names as own properties, never an empty list", () => {
  fc.assert(fc.property(block, fc.option(block, { nil: undefined }), (plan, max) => {
    const { granted } = grant(plan, max);
    assertEquals(Object.keys(granted).sort(), [...PERMISSION_KINDS].sort());
    assertEquals(Object.getPrototypeOf(granted), Object.prototype);
    for (const name of PERMISSION_KINDS) {
      const { value, get } = Object.getOwnPropertyDescriptor(granted, name)!; // its keys were compared above
      assertEquals(get, undefined);
      assert(typeof value === "boolean" || Array.isArray(value) && value.length > 0);
    }
  }));
});

Deno.test("effectiveGrant() of its own result is the same, and plan and policy can be swapped", () => {
  fc.assert(fc.property(block, block, (plan, max) => {
    const { granted } = grant(plan, max);
    assertEquals(grant(granted, max), { granted, dropped: [] });
    assertEquals(grant(granted, plan), { granted, dropped: [] });
    assertEquals(sorted(grant(max, plan).granted), sorted(granted));
  }));
});

Deno.test("effectiveGrant() with nothing is nothing, and with everything is the plan", () => {
  const none = grant({}).granted;
  assertEquals(new Set(Object.values(none)), new Set([false]));
  fc.assert(fc.property(block, (plan) => {
    assertEquals(grant(plan, noPermissions()).granted, none);
    assertEquals(grant(noPermissions(), plan).granted, none);
    assertEquals(grant(plan, undefined, () => false).granted, none);
    assertEquals(grant(plan, WHOLE), grant(plan));
    assertEquals(grant(plan).dropped, []);
  }));
});

Deno.test("excessPermissions() finds exactly what a policy would drop", () => {
  fc.assert(fc.property(block, block, (asked, max) => {
    const excess = excessPermissions(asked, max, { asked: resolve, max: resolve });
    const { dropped } = grant(asked, max);
    const names = (
      list: readonly { permission: string; entry: string | true }[],
    ) => [...new Set(list.map(({ permission, entry }) => `${permission} ${entry}`))];
    assertEquals(names(excess), names(dropped));
    assertEquals(excessPermissions(asked, asked, { asked: resolve, max: resolve }), []);
  }));
});

type Value = boolean | string[];
type Dropped = [entry: string | true, by: DroppedEntry["by"]][];

/** Plan, policy, effective permissions, dropped entries. */
const TABLE: readonly (readonly [name: PermissionKind, Value, Value, Value, Dropped?])[] = [
  ["net", ["example.com"], ["example.com:443"], ["example.com:443"], [["example.com", "policy"]]],
  ["net", ["example.com:443"], ["example.com"], ["example.com:443"]],
  ["net", ["example.com:443"], ["example.com:80"], false, [["example.com:443", "policy"]]],
  ["net", ["*.example.com"], ["a.example.com"], ["a.example.com"], [["*.example.com", "policy"]]],
  ["net", ["a.b.example.com:1", "example.com"], ["*.example.com"], ["a.b.example.com:1", "example.com"]],
  ["net", ["*.example.com"], ["*.a.example.com:8"], ["*.a.example.com:8"], [["*.example.com", "policy"]]],
  ["net", ["evilexample.com"], ["*.example.com"], false, [["evilexample.com", "policy"]]],
  ["net", ["EXAMPLE.com.:0443"], ["example.COM"], ["example.com:443"]],
  ["net", ["10.0.0.0/8:80"], ["10.1.2.3"], ["10.1.2.3:80"], [["10.0.0.0/8:80", "policy"]]],
  ["net", ["10.1.2.3/16"], ["10.0.0.0/8"], ["10.1.0.0/16"]],
  ["net", ["10.1.2.3/32"], ["10.0.0.0/8"], ["10.1.2.3"]],
  ["net", ["11.0.0.1"], ["10.0.0.0/8"], false, [["11.0.0.1", "policy"]]],
  ["net", ["10.1.2.3"], ["*.2.3"], false, [["10.1.2.3", "policy"]]],
  ["net", ["[0:0::1]:80"], ["[::1]"], ["[::1]:80"]],
  ["net", ["[::ffff:127.0.0.1]:80"], ["127.0.0.0/8"], ["127.0.0.1:80"]],
  ["net", true, ["a.com", "*.com"], ["*.com"], [[true, "policy"]]],
  ["net", ["a.com", "A.com", "a.com:1"], true, ["a.com"]],
  ["net", true, true, true],
  ["net", true, [], false, [[true, "policy"]]],
  ["net", [], true, false],
  [
    "net",
    ["::1", "*", "https://a.com", "a.com:99999", "[fe80::]/10", "[::1%lo]", "127.1", "unix:/x"],
    true,
    false,
    [
      ["::1", "process"],
      ["*", "process"],
      ["https://a.com", "process"],
      ["a.com:99999", "process"],
      ["[fe80::]/10", "process"],
      ["[::1%lo]", "process"],
      ["127.1", "process"],
      ["unix:/x", "process"],
    ],
  ],
  ["read", ["/a"], ["/a/b"], ["/a/b"], [["/a", "policy"]]],
  ["read", ["/a/b/../b//c/./"], ["/a/b"], ["/a/b/c"]],
  ["read", ["/a/../b"], ["/a"], false, [["/a/../b", "policy"]]],
  ["read", ["/ab", "/A/b"], ["/a"], false, [["/ab", "policy"], ["/A/b", "policy"]]],
  ["read", ["data/"], true, ["/srv/plan/data"]],
  ["read", ["data", "../other"], ["."], ["/srv/plan/data"], [["../other", "policy"]]],
  ["read", ["out/x"], ["/srv"], false, [["out/x", "policy"]]],
  ["read", ["out/x"], ["/etc"], ["/etc/x"]],
  ["read", ["/srv"], ["out"], false, [["/srv", "policy"]]],
  ["read", ["/srv/data/up/data/x"], ["/srv/data"], ["/srv/data/x"]],
  ["read", ["/new/deep/x/"], ["/new"], ["/new/deep/x"]],
  ["read", ["/locked/x", ""], true, false, [["/locked/x", "process"], ["", "process"]]],
  ["read", ["/a"], ["/locked", "/a"], ["/a"]],
  ["read", ["C:\\x", "a\\..\\..\\x"], true, false, [["C:\\x", "process"], ["a\\..\\..\\x", "process"]]],
  ["env", ["AWS_*"], ["AWS_REGION"], ["AWS_REGION"], [["AWS_*", "policy"]]],
  ["env", ["AWS_REGION", "AWS_S*", "AW"], ["AWS_*"], ["AWS_REGION", "AWS_S*"], [["AW", "policy"]]],
  ["env", ["A*B"], ["A*"], ["A*B"]],
  ["env", ["AxB"], ["A*B"], false, [["AxB", "policy"]]],
  ["env", ["*"], ["A", "B"], ["A", "B"], [["*", "policy"]]],
  ["env", ["aws_x"], ["AWS_*"], false, [["aws_x", "policy"]]],
  ["ffi", ["/lib/x.so"], ["/lib"], ["/lib/x.so"]],
  ["run", ["git", "/usr/bin/git"], ["git"], ["git"], [["/usr/bin/git", "policy"]]],
  ["sys", ["uid", "gid"], ["gid"], ["gid"], [["uid", "policy"]]],
  ["import", ["a.com:443"], ["*.com"], ["a.com:443"]],
];

for (const [name, plan, max, expected, dropped = []] of TABLE) {
  Deno.test(`effectiveGrant() of ${name} ${JSON.stringify(plan)} under ${JSON.stringify(max)} ${JSON.stringify(expected)}`, () => {
    const result = grant({ [name]: plan }, { [name]: max });
    assertEquals(result.granted, { ...grant({}).granted, [name]: expected });
    assertEquals(result.dropped, dropped.map(([entry, by]) => ({ permission: name, entry, by })));
  });
}

Deno.test("effectiveGrant() grants nothing of a permission that the process has in part, and reports it", () => {
  const process: GrantCheck = (_, entry) => entry !== "all" && entryText(entry) === "a.com:443";
  assertEquals(grant({ net: true }, undefined, process).dropped, [{
    permission: "net",
    entry: true,
    by: "process",
  }]);
  const narrowed = grant({ net: true, read: true }, { net: ["a.com:443", "b.com"] }, process);
  assertEquals([narrowed.granted.net, narrowed.granted.read], [["a.com:443"], false]);
  assertEquals(narrowed.dropped, [
    { permission: "net", entry: true, by: "policy" },
    { permission: "read", entry: true, by: "policy" },
  ]);
});
