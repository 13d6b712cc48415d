/**
 * Checks the form of `permissions:` blocks in plans and in the policy: Deno's permission names and values.
 */
import type { Permissions } from "../../sdk/contracts.ts";
import type { JsonSchema } from "../../sdk/json.ts";
import { hasControl } from "../../text/escape.ts";
import { checkKeys, didYouMean, type Findings } from "../../sdk/findings.ts";
import { object, texts } from "./field_checks.ts";
import { PERMISSION_KINDS, type PermissionKind } from "../../sdk/plan.ts";
import { parseNetEntry } from "../permissions/net_entry.ts";
import { describe, type Path } from "../../sdk/value_path.ts";

/**
 * Kinds that Deno's `sys` permission accepts (2.6.8 to 2.9.6). Deno does not start a worker with any other.
 */
const SYS_KINDS: ReadonlySet<string> = new Set([
  "hostname",
  "osRelease",
  "osUptime",
  "loadavg",
  "networkInterfaces",
  "systemMemoryInfo",
  "uid",
  "gid",
  "username",
  "cpus",
  "homedir",
  "getegid",
  "statfs",
  "getPriority",
  "setPriority",
  "userInfo",
  "inspector",
  "setuid",
  "umask",
]);

const KNOWN: ReadonlySet<string> = new Set(PERMISSION_KINDS);

const MEANINGS: Readonly<Record<PermissionKind, string>> = {
  net: "Hosts that it may reach",
  read: "Files and folders that it may read",
  write: "Files and folders that it may write",
  env: "Variables of the process that it may read",
  run: "Programs that it may run",
  sys: "Facts about the machine that it may read",
  ffi: "Native libraries that it may load",
  import: "Hosts that it may import code from",
};

/** Schema of a permissions block, for editors. */
export const PERMISSIONS_SCHEMA: JsonSchema = {
  type: "object",
  description: "What it may touch, by Deno's names: true for all, or a list",
  properties: Object.fromEntries(PERMISSION_KINDS.map((kind) => {
    const items = kind === "sys" ? { enum: [...SYS_KINDS] } : { type: "string" };
    return [kind, { anyOf: [{ type: "boolean" }, { type: "array", items }], description: MEANINGS[kind] }];
  })),
  additionalProperties: false,
};

/** Maximum entries of one permission: intersections compare all pairs. */
const MAX_ENTRIES = 200;
const HINT = 'write true, false or a list, such as net: ["api.example.com"]';

/** Returns a permissions block if it is valid: each name is true, false or a list of text. */
export function checkPermissions(value: unknown, path: Path, findings: Findings): Permissions | undefined {
  const fields = object(value, path, findings, 'write names with values, such as {net: ["api.example.com"]}');
  if (!fields) return undefined;
  checkKeys(fields, KNOWN, path, findings, "error");
  const permissions: Permissions = {};
  for (const name of PERMISSION_KINDS) {
    if (!Object.hasOwn(fields, name)) continue;
    const setting = fields[name];
    const place = [...path, name];
    if (typeof setting === "boolean") permissions[name] = setting;
    else if (Array.isArray(setting) && setting.length > MAX_ENTRIES) {
      const message =
        `Cannot read ${name}: must have at most ${MAX_ENTRIES} entries: received ${setting.length}`;
      findings.error(place, "value", message, "use fewer, wider entries");
    } else if (Array.isArray(setting)) {
      const entries = texts(setting, place, findings, HINT);
      if (entries) permissions[name] = entries;
      entries?.forEach((entry, index) => checkEntry(name, entry, [...place, index], findings));
    } else {
      findings.error(
        place,
        "type",
        `Cannot read ${name}: must be true, false or a list of text: received ${describe(setting)}`,
        HINT,
      );
    }
  }
  return permissions;
}

/** Reports an entry that Deno would reject or misread, so that the module could not start. */
function checkEntry(name: PermissionKind, entry: string, path: Path, findings: Findings): void {
  const problem = hasControl(entry) ? { fact: "it contains a control character" } : problemOf(name, entry);
  if (!problem) return;
  const message = `Cannot read an entry of ${name}: ${problem.fact}: received ${describe(entry)}`;
  findings.error(path, "value", message, problem.hint);
}

function problemOf(name: PermissionKind, entry: string): { fact: string; hint?: string } | undefined {
  switch (name) {
    case "net":
    case "import": {
      const parsed = parseNetEntry(entry);
      return "must" in parsed ? { fact: `must be ${parsed.must}`, hint: parsed.hint } : undefined;
    }
    case "read":
    case "write":
    case "ffi":
      return pathProblem(entry);
    case "env":
      return /[=\s]/.test(entry) ? { fact: "must be a variable's name" } : undefined;
    case "sys":
      return SYS_KINDS.has(entry) ? undefined : sysProblem(entry);
    case "run":
      return undefined;
  }
}

function pathProblem(entry: string): { fact: string; hint: string } | undefined {
  if (entry === "~" || entry.startsWith("~/")) {
    return {
      fact: '"~" is not replaced with the home folder',
      hint: "write the full path, such as /home/me/notes",
    };
  }
  if (!entry.startsWith("file:")) return undefined;
  const hint = URL.canParse(entry) ? `write "${new URL(entry).pathname}"` : "write it without file:";
  return { fact: "must be a path", hint };
}

function sysProblem(entry: string): { fact: string; hint: string } {
  const meant = didYouMean(entry, SYS_KINDS);
  const known = `known are ${[...SYS_KINDS].join(", ")}`;
  return { fact: "Deno has no such kind", hint: meant ? `did you mean "${meant}"? ${known}` : known };
}
