/**
 * `preamp plan explain`: prints what a plan may touch, for a reviewer: overview, table of modules, their
 * permissions, warnings and red flags. Fetches its modules and executes none.
 */
import { LIMIT_NAMES } from "../../../plan/check/field_checks.ts";
import type { ExplainedModule, Explanation } from "../../../plan/explain.ts";
import { permissionsNear, summaryText } from "../../../plan/summary.ts";
import type { Permissions } from "../../../sdk/contracts.ts";
import { PERMISSION_KINDS } from "../../../sdk/plan.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { formatFlags } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { EXIT, inDocument } from "../../errors.ts";
import { MODEL_FLAG, modelOf, PLAN_FLAG, planNames, readPlans, withPlans } from "../../plan_files.ts";
import { filePath } from "../../../settings/paths.ts";
import { withSettings } from "../../settings.ts";
import { counted, shellWord, type Style, styleOf, tableText, wrapText } from "../../terminal/format.ts";
import type { Output } from "../../terminal/io.ts";

export const command: Command = {
  usage: "plan explain [flags] <file>…",
  summary:
    "Prints what a plan may touch: modules with hashes, permissions, variables, limits, red flags. Fetches modules, runs none.",
  flags: withSettings([
    PLAN_FLAG,
    MODEL_FLAG,
    ...formatFlags({ help: "a table (default), or the object that the HTTP API answers" }),
    { name: "strict", help: "exit 1 if there is a red flag" },
  ], ["workspace", "frozen"]),
  details: () =>
    `A plan.lock.json beside the plan is used. wanted: permissions that the module declares; asked: those that the plan
gives it; granted: those of them that this process has; refused: the rest. Paths in the Deno flags are relative to the
plan's folder.
Exit codes: 0 explained, 1 a module cannot be loaded or does not match its pin (--strict: or there is a red flag),
3 the plan is invalid, 4 it is refused by policy.

  preamp plan explain plans/support.yaml
  preamp plan explain -p base.yaml -p prod.yaml --output-format json
`,
  async run(args, io) {
    const { name, plan, base_url } = await readPlans(planNames(args, "explain"), io);
    const explanation = await withPlans(
      args,
      io,
      ({ explain }) => inDocument(name, explain({ plan, ...modelOf(args) }, TERMINAL, { base_url })),
      { overridden: true },
    );
    const is_refused = args.has("strict") && explanation.red_flags.length > 0;
    const text = explanationText(explanation, name, io.out, filePath(io.cwd));
    return { data: explanation, text, exit: is_refused ? EXIT.failed : EXIT.done };
  },
};

function explanationText(
  explanation: Explanation,
  name: string,
  output: Pick<Output, "color" | "columns">,
  cwd: string,
): string {
  const style = styleOf(output);
  const columns = Math.max(40, output.columns());
  const parts = [
    overview(explanation, name, style, columns),
    sentence(explanation.summary, explanation.red_flags, cwd, style, columns),
    modulesTable(explanation.modules, style),
    ...explanation.modules.filter(hasOwnSection).map((module) => moduleText(module, style)),
    listText("warning", explanation.warnings, style.yellow, style, columns),
    listText("red flag", explanation.red_flags, style.red, style, columns),
  ];
  return parts.join("\n");
}

/** Returns the summary as a sentence with paths relative to this folder; red if it may start a shell. */
function sentence(
  summary: Explanation["summary"],
  red_flags: Explanation["red_flags"],
  cwd: string,
  { red, bold }: Style,
  columns: number,
): string {
  const text = summaryText({ ...summary, may: permissionsNear(summary.may, cwd) });
  const paint = red_flags.some(({ code }) => code === "permission_shell") ? red : bold;
  return wrapText(`${clean(text)}.`, columns).map((line) => `${paint(line)}\n`).join("");
}

function overview(
  { plan_hash, lock_hash, texts, instructions, modes, limits, env, deno_flags }: Explanation,
  name: string,
  { bold, dim }: Style,
  columns: number,
): string {
  const list = <Item>(items: readonly Item[], shown: (item: Item) => string, separator: string) =>
    items.length === 0 ? "none" : items.map(shown).join(separator);
  const rows: (readonly [string, string])[] = [
    ["plan", clean(name)],
    ["hash", plan_hash],
    ["lock", lock_hash ?? "none"],
    ...texts.length === 0 ? [] : [["texts", texts.map(({ label }) => clean(label)).join(", ")] as const],
    ...instructions === null ? [] : [
      ["project", `its instructions, now ${list(instructions, ({ path }) => clean(path), ", ")}`] as const,
    ],
    [
      "limits",
      LIMIT_NAMES.map((limit) => `${limit} ${limits[limit]}`).join(", ") +
      (limits.on_limit === "pause" ? "; a person may raise them" : ""),
    ],
    ...modes.map(({ name, active, decides }) =>
      ["mode", `${clean(name)}${active ? " (active)" : ""}: ${clean(decides)}`] as const
    ),
    ["variables", list(env, clean, ", ")],
    ["deno flags", list(deno_flags, (flag) => shellWord(clean(flag)), " ")],
  ];
  return rows.flatMap(([label, text]) =>
    wrapText(text, columns - 12).map((line, index) => {
      const head = (index === 0 ? label : "").padEnd(12);
      return `${dim(head)}${label === "plan" ? bold(line) : line}\n`;
    })
  ).join("");
}

function modulesTable(modules: readonly ExplainedModule[], { bold, red }: Style): string {
  const rows = modules.map(({ module, type, isolation, files, url, red_flags }) => [
    clean(module),
    type,
    isolation,
    url === null ? "built in" : counted(files.length, "file"),
    url === null ? "" : bytesText(files.reduce((sum, { bytes }) => sum + bytes, 0)),
    red_flags.length === 0 ? "" : `${red_flags.length}`,
  ]);
  const head = ["module", "type", "tier", "source", "size", "red flags"];
  const paint = (cell: string, column: number, row: number) =>
    row === 0 ? bold(cell) : column === 5 ? red(cell) : cell;
  return tableText([head, ...rows], "", paint);
}

/** Returns false for built-in modules without permissions: the table has all there is to know. */
function hasOwnSection({ url, servers, permissions: { wanted, asked } }: ExplainedModule): boolean {
  return url !== null || servers.length > 0 ||
    [wanted ?? {}, asked].some((block) => Object.keys(block).length > 0);
}

function moduleText(module: ExplainedModule, style: Style): string {
  const { bold, cyan, dim } = style;
  const version = module.version === null ? "" : ` ${clean(module.version)}`;
  const lines = [`${bold(clean(module.module))}${version} ${dim(`${module.path}, ${module.isolation}`)}\n`];
  if (module.description) lines.push(`  ${clean(module.description)}\n`);
  if (module.url !== null) {
    lines.push(`  ${dim("url")}        ${cyan(clean(module.url))}\n`);
    lines.push(`  ${dim("integrity")}  ${module.integrity}\n`);
    for (const { url, sha256, bytes } of module.files) {
      lines.push(`  ${bytesText(bytes).padStart(9)}  ${clean(url)}\n             ${dim(sha256)}\n`);
    }
  }
  for (const { name, transport, target, tools } of module.servers) {
    const known = tools === null ? "its tools are not locked" : `tools ${tools.map(clean).join(", ")}`;
    lines.push(`  ${dim("server")}     ${clean(`${name}: ${transport} ${target}`.trim())}; ${known}\n`);
  }
  return lines.join("") + permissionsText(module, style);
}

const COLUMNS = ["wanted", "asked", "granted", "refused"] as const;

function permissionsText({ permissions }: ExplainedModule, { dim, green, red }: Style): string {
  const names = PERMISSION_KINDS.filter((name) =>
    COLUMNS.some((column) => isGiven(permissions[column]?.[name]))
  );
  const rows = names.flatMap((name) => {
    const cells = COLUMNS.map((column) => entries(permissions[column], name));
    const length = Math.max(...cells.map((cell) => cell.length));
    const rowAt = (row: number) => [row === 0 ? name : "", ...cells.map((cell) => cell[row] ?? "")];
    return Array.from({ length }, (_, row) => rowAt(row));
  });
  const unknown = permissions.wanted === null ? dim("  the permissions that it wants are unknown\n") : "";
  if (rows.length === 0) return `${unknown}${dim("  no permissions\n")}`;
  const paint = (cell: string, column: number, row: number) => {
    if (row === 0 || column > 2 && cell.trim() === "-") return dim(cell);
    return column === 3 ? green(cell) : column === 4 ? red(cell) : cell;
  };
  return unknown + tableText([["permission", ...COLUMNS], ...rows], "  ", paint);
}

function isGiven(value: Permissions[keyof Permissions]): boolean {
  return value === true || Array.isArray(value) && value.length > 0;
}

/** Returns the entries of a permission, one for each line of the cell. */
function entries(block: Permissions | null, name: keyof Permissions): string[] {
  if (block === null) return ["?"];
  const value = block[name];
  return value === true ? ["all"] : Array.isArray(value) && value.length > 0 ? value.map(clean) : ["-"];
}

function listText(
  noun: string,
  items: readonly { code: string; path?: string; message: string }[],
  paint: (text: string) => string,
  { bold, dim, green }: Style,
  columns: number,
): string {
  if (items.length === 0) return `${noun === "red flag" ? green("no red flags") : dim("no warnings")}\n`;
  const lines = items.flatMap(({ code, path, message }) => [
    `  ${paint(clean(code))}${path === undefined || path === "" ? "" : `  ${bold(clean(path))}`}\n`,
    ...wrapText(clean(message), columns - 6).map((line) => `      ${line}\n`),
  ]);
  return `${paint(counted(items.length, noun))}\n${lines.join("")}`;
}

function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

const clean = escapeUnprintable;
