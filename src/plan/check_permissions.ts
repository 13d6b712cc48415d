/** The shape of `permissions:` blocks, in plans and in the policy: Deno's names and value forms (trust.md). */
import type { Permissions } from "../sdk/contracts.ts";
import { hasControl } from "./characters.ts";
import { checkKeys, object, texts } from "./fields.ts";
import type { Findings } from "./findings.ts";
import { describe, type Path } from "./path.ts";

/** Deno's permission names. */
export const PERMISSION_NAMES = ["net", "read", "write", "env", "run", "sys", "ffi", "import"] as const;

/** One of Deno's permission names. */
export type PermissionName = (typeof PERMISSION_NAMES)[number];

const KNOWN: ReadonlySet<string> = new Set(PERMISSION_NAMES);
const HINT = 'write true, false or a list, such as net: ["api.example.com"]';

/** Returns a permissions block when it has Deno's form: each name true, false or a list of text. */
export function checkPermissions(value: unknown, path: Path, findings: Findings): Permissions | undefined {
  const fields = object(value, path, findings, 'write names with values, such as {net: ["api.example.com"]}');
  if (!fields) return undefined;
  checkKeys(fields, KNOWN, path, findings, "error");
  const permissions: Permissions = {};
  for (const name of PERMISSION_NAMES) {
    if (!Object.hasOwn(fields, name)) continue;
    const given = fields[name];
    const place = [...path, name];
    if (typeof given === "boolean") permissions[name] = given;
    else if (Array.isArray(given)) {
      const entries = texts(given, place, findings, HINT);
      if (entries) permissions[name] = entries;
      entries?.forEach((entry, index) => checkEntry(name, entry, [...place, index], findings));
    } else {
      findings.error(
        place,
        "type",
        `Cannot read ${name}: must be true, false or a list of text: received ${describe(given)}`,
        HINT,
      );
    }
  }
  return permissions;
}

/** Refuses what Deno would take for something else, or not take at all. */
function checkEntry(name: PermissionName, entry: string, path: Path, findings: Findings): void {
  if (hasControl(entry)) {
    findings.error(
      path,
      "value",
      `Cannot read an entry of ${name}: it holds a control character: received ${describe(entry)}`,
    );
  } else if ((name === "net" || name === "import") && (entry.includes("://") || /[\s,]/.test(entry))) {
    const host = URL.canParse(entry) ? new URL(entry).host : undefined;
    findings.error(
      path,
      "value",
      `Cannot read an entry of ${name}: must be host or host:port: received ${describe(entry)}`,
      host ? `write "${host}"` : "one host for each entry",
    );
  } else if (name === "env" && /[=\s]/.test(entry)) {
    findings.error(
      path,
      "value",
      `Cannot read an entry of env: must be a variable's name: received ${describe(entry)}`,
    );
  }
}
