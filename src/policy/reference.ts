/**
 * Generates the documentation of the settings from the table: a `preamp.yaml` with every default, and a
 * Markdown page.
 */
import { ALL_SETTINGS, OVERLAY_SECTIONS, type Setting, valuesOf } from "./settings.ts";

/** Settings under one top-level key. The name is empty for settings that are top-level keys themselves. */
interface Section {
  readonly name: string;
  readonly settings: readonly { key: string; setting: Setting }[];
}

const POLICIES = `Policies of single keys, by name; auth.keys[].policy names one. Each may have ${
  OVERLAY_SECTIONS.join(", ")
}. Missing settings are the server's; limits can only be smaller.`;

/** Returns a `preamp.yaml` with every setting at its default, each below a comment with its meaning. */
export function exampleDocument(): string {
  const sections = sectionsOf(ALL_SETTINGS).map(({ name, settings }) => {
    const indent = name === "" ? "" : "  ";
    const lines = settings.map(({ key, setting }) => {
      const comment = comments(`${setting.meaning} (${valuesOf(setting)})`, indent);
      return `${comment}${indent}${key}: ${yamlOf(setting.default)}\n`;
    });
    return `${name === "" ? "" : `${name}:\n`}${lines.join("")}`;
  });
  return `# Settings of Preamp, each with its default: keep what you change and delete the rest.
# A flag goes over a variable (PREAMP_LIMITS_MAX_COST_USD), a variable over this file, this file over the default.

${sections.join("\n")}
${comments(POLICIES, "")}policies: {}
#  small:
#    limits: { max_total_tokens: 50000 }
#    permissions: { max: { net: [] } }
`;
}

/** Returns a page in Markdown that describes every setting. */
export function referencePage(): string {
  const tables = sectionsOf(ALL_SETTINGS).map(({ name, settings }) => {
    const rows = settings.map(({ key, setting }) =>
      `| \`${key}\` | ${cell(setting.meaning)} | ${cell(valuesOf(setting))} | ${
        cell(`\`${yamlOf(setting.default)}\`${sizeOf(setting)}`)
      } | ${holdsForKeys(setting) ? "yes" : ""} |\n`
    );
    const title = name === "" ? "" : `## \`${name}\`\n\n`;
    return `${title}| setting | meaning | values | default | per key |\n| - | - | - | - | - |\n${
      rows.join("")
    }`;
  });
  return `# Settings

The keys of \`preamp.yaml\`. Except for \`auth.keys\`, \`mcp.servers\`, \`permissions.max\` and \`policies\`, each setting is also a flag
of \`preamp serve\` (\`--limits.max_cost_usd 1\`) and an environment variable (\`PREAMP_LIMITS_MAX_COST_USD=1\`). A flag
overrides a variable, a variable the file, the file the default. \`preamp config example\` prints a file with every
default; \`preamp config check\` reports the errors of a file with line and column.

${tables.join("\n")}
## \`policies\`

${POLICIES} The last column says which settings it
may have; the others apply to the whole server and are errors there.

\`\`\`yaml
auth:
  keys:
    - name: ci
      sha256: "${"0".repeat(64)}" # printf %s KEY | sha256sum
      policy: small
policies:
  small:
    limits: { max_total_tokens: 50000 }
    permissions: { max: { net: [] } }
\`\`\`
`;
}

function sectionsOf(settings: readonly Setting[]): Section[] {
  const sections = new Map<string, { key: string; setting: Setting }[]>();
  for (const setting of settings) {
    const [section = "", key = ""] = setting.path.split(".");
    const name = key === "" ? "" : section;
    sections.set(name, [...sections.get(name) ?? [], { key: key || section, setting }]);
  }
  return [...sections].map(([name, found]) => ({ name, settings: found }));
}

/** Returns whether the policy of one key may set it. */
function holdsForKeys({ path, for_keys }: Setting): boolean {
  const [section] = path.split(".");
  return for_keys === undefined && OVERLAY_SECTIONS.some((name) => name === section);
}

/** Returns a value as YAML on one line. JSON is YAML, and plain words need no quotes. */
function yamlOf(value: unknown): string {
  if (typeof value === "string" && /^[A-Za-z][A-Za-z0-9/.]*$/.test(value)) return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return `{ ${Object.entries(value).map(([key, item]) => `${key}: ${yamlOf(item)}`).join(", ")} }`;
}

/** Returns a number of bytes as KiB or MiB. */
function sizeOf({ unit, default: value }: Setting): string {
  if (unit !== "bytes" || typeof value !== "number") return "";
  const [size, name] = value % 2 ** 20 === 0 ? [value / 2 ** 20, "MiB"] : [value / 2 ** 10, "KiB"];
  return ` (${size} ${name})`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** Returns a text as comment lines of about 100 characters. */
function comments(text: string, indent: string): string {
  const lines = text.match(/.{1,100}(?:\s|$)/g) ?? [];
  return lines.map((line) => `${indent}# ${line.trimEnd()}\n`).join("");
}
