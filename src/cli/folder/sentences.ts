/** Says in a sentence what each file of a folder would do. Fetches nothing, and runs no code. */
import { createModuleTable } from "../../app/module_table.ts";
import { planSentence } from "../../app/plan_sentence.ts";
import { LOCK_FILE } from "../../app/named_plans.ts";
import { mayBeBundle } from "../../bundle/kinds.ts";
import { providerVariables } from "../../app/provider_service.ts";
import { parseDocument } from "../../plan/parse/parse.ts";
import { policyFromData } from "../../policy/parse_policy.ts";
import { VENDOR_KEYS } from "../../policy/vendor_keys.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { describeStore, parseStoreName } from "../../store/open.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { filePath } from "../../settings/paths.ts";
import { listText } from "../terminal/format.ts";
import { parseVariables } from "./env_file.ts";
import type { FolderFile } from "./folder_files.ts";
import { textOf } from "./folder_files.ts";

/** Most files of one kind that have a sentence each. */
const MAX_LISTED = 20;
/** Most characters of one name. */
const MAX_NAME = 120;

/** What is known beside the files. */
export interface SentenceDeps {
  /** Folder in which the command is started. */
  readonly cwd: URL;
  /** Variables that are set. */
  env(name: string): string | undefined;
}

/** A file, or a group of files, and what it would do. */
export interface FileSentence {
  /** Name of the file, or of the group. */
  readonly name: string;
  /** Names of the files. */
  readonly names: readonly string[];
  readonly does: string;
}

/** Resolves to a sentence for each file; the last of many plans share one. */
export async function sentencesOf(
  files: readonly FolderFile[],
  deps: SentenceDeps,
): Promise<FileSentence[]> {
  const plans = files.filter(({ kind }) => kind === "plans");
  const alone = files.filter(({ kind }) => kind !== "plans");
  const listed = [...alone, ...plans.slice(0, MAX_LISTED)];
  const rest = plans.slice(MAX_LISTED);
  const sentence = (name: string, of: readonly FolderFile[], does: string): FileSentence => ({
    name,
    names: of.map(({ name }) => name),
    does,
  });
  return [
    ...await Promise.all(
      listed.map(async (file) => sentence(safe(file.name), [file], await doesOf(file, deps))),
    ),
    ...rest.length > 0
      ? [sentence(`${rest.length} more plans`, rest, "preamp plan explain FILE says what each may touch")]
      : [],
  ];
}

async function doesOf(file: FolderFile, deps: SentenceDeps): Promise<string> {
  const link = file.leads_to === undefined ? "" : `a link to ${safe(file.leads_to)}; `;
  let text: string;
  try {
    text = textOf(file);
  } catch (error) {
    return `${link}${errorMessage(error)}`;
  }
  try {
    return link + await SENTENCES[file.kind](text, deps, file);
  } catch (error) {
    return `${link}is not valid: ${safe(errorMessage(error), 300)}`;
  }
}

type SentenceOf = (text: string, deps: SentenceDeps, file: FolderFile) => string | Promise<string>;

const SENTENCES: Readonly<Record<FolderFile["kind"], SentenceOf>> = {
  settings: settingsSentence,
  variables: variablesSentence,
  sources: sourcesSentence,
  plans: (text, { cwd, env }, { url }) =>
    url.href.endsWith(`/${LOCK_FILE}`)
      ? "pins the modules of these plans"
      : mayBeBundle(text, url.href)
      ? "is a bundle, which reads other files: only -p runs it, and says what it may touch"
      : planSentence(text, { base_url: url.href, workspace: filePath(cwd), env }).then((said) =>
        safe(said, 600)
      ),
};

/** Settings that are named one by one, because they let something run, be read, or be sent. */
const SAID: Readonly<Record<string, (value: unknown, data: JsonObject) => string | undefined>> = {
  modules: (value) => {
    const { inline, allow, private_hosts } = isObject(value) ? value : {};
    return joined([
      named(
        inline,
        (names) => `runs the modules in ${names} inside this program, with all rights of this user`,
      ),
      named(allow, (names) => `lets callers load modules from ${names}`),
      named(private_hosts, (names) => `fetches modules from the private hosts ${names}`),
    ]);
  },
  mcp: (value) => {
    const servers = isObject(value) && isObject(value.servers) ? Object.entries(value.servers) : [];
    return named(
      servers.map(([name, server]) => `${name} (${serverText(server)})`),
      (names) => `defines the MCP servers ${names}`,
    );
  },
  store: (value) => {
    const name = typeof value === "string" ? parseStoreName(value) : null;
    return name === null ? undefined : `keeps runs and conversations in ${safe(describeStore(name))}`;
  },
  model: (value) => value ? `runs the demo agent on ${safe(String(value))}` : undefined,
  plans: (value) => `takes named plans from ${safe(String(value))}`,
  workspace: (value) => value ? `makes ${safe(String(value))} the workspace` : undefined,
  listen: (value) =>
    isObject(value) && value.host !== undefined ? `listens on ${safe(String(value.host))}` : undefined,
  auth: (value) => {
    const keys = isObject(value) && Array.isArray(value.keys) ? value.keys.length : 0;
    return keys === 0 ? undefined : `accepts ${keys} API ${keys === 1 ? "key" : "keys"} that it names`;
  },
  cors: (value) =>
    named(isObject(value) ? value.origins : [], (names) => `lets pages of ${names} call the server`),
  permissions: (value) => {
    const max = isObject(value) && isObject(value.max) ? Object.entries(value.max) : [];
    return named(
      max.filter(([, entries]) => entries !== false).map(([kind]) => kind),
      (names) => `grants the modules of callers ${names}`,
    );
  },
  env: (value) =>
    named(isObject(value) ? value.allow : [], (names) => `lets the plans of callers read ${names}`),
  policies: (value) => {
    const inner = isObject(value)
      ? Object.values(value).filter(isObject).flatMap((policy) =>
        ["modules", "permissions", "env"].flatMap((key) =>
          Object.hasOwn(policy, key) ? SAID[key]!(policy[key], policy) ?? [] : []
        )
      )
      : [];
    return joined(["has policies of keys", ...new Set(inner)]);
  },
};

async function settingsSentence(text: string): Promise<string> {
  const { data } = await parseDocument(text, { label: "the settings" });
  policyFromData(data);
  const others = Object.keys(data).filter((key) => !Object.hasOwn(SAID, key));
  const said = Object.entries(SAID).flatMap(([key, say]) =>
    Object.hasOwn(data, key) ? say(data[key], data) ?? [] : []
  );
  return joined([...said, named(others, (names) => `sets ${names}`)]) ?? "changes no setting";
}

function serverText(server: unknown): string {
  const { command, url, npm } = isObject(server) ? server : {};
  if (Array.isArray(command)) return `starts ${JSON.stringify(command.join(" "))}`;
  if (typeof npm === "string") return `runs the package ${npm}`;
  return `calls ${hostOfText(String(url))}`;
}

async function variablesSentence(text: string, { env }: SentenceDeps): Promise<string> {
  const { variables, refused } = await parseVariables(text);
  const vendors = await providerVariables(createModuleTable());
  const addresses = new Set(vendors.flatMap(({ addresses }) => addresses));
  const keys = new Set([...VENDOR_KEYS, ...vendors.flatMap(({ keys }) => keys)]);
  const is_url = (value: string) => /^https?:\/\//i.test(value);
  const sends = [...variables].flatMap(([name, value]) => {
    const vendor = vendors.find((one) => one.addresses.includes(name));
    if (!vendor) return is_url(value) ? [`sets ${safe(name)} to ${hostOfText(value)}`] : [];
    const key = vendor.keys.find((key) => (env(key) ?? "") !== "");
    const own = key === undefined ? "" : `, with your ${key}`;
    return [`sends the prompts of ${vendor.provider} to ${hostOfText(value)}${own}`];
  });
  const set = [...variables].filter(([name]) => (env(name) ?? "") !== "").map(([name]) => name);
  const others = [...variables].filter(([name, value]) =>
    !keys.has(name) && !addresses.has(name) && !is_url(value)
  );
  return joined([
    named([...variables.keys()].filter((name) => keys.has(name)), (names) => `sets the keys ${names}`),
    ...sends,
    named(others.map(([name]) => name), (names) => `sets ${names} for plans that name them`),
    named(set, (names) => `does not replace ${names}, which you have set`),
    named(refused, (names) => `may not set ${names}`),
  ]) ?? "sets nothing";
}

async function sourcesSentence(text: string): Promise<string> {
  const { data } = await parseDocument(text, { label: "the sources" });
  const sources = isObject(data.sources) ? Object.entries(data.sources) : [];
  return named(
    sources.map(([id, source]) =>
      `${id}${id === "hooks-approval" ? ", which asks before calls," : ""} by ${String(source)}`
    ),
    (names) => `replaces the modules ${names}, in sandboxes`,
  ) ?? "replaces no module";
}

/** Returns the host of an address: the rest may be a secret. */
function hostOfText(value: string): string {
  const url = URL.parse(value.includes("://") ? value : `http://${value}`);
  return url === null ? "an address that is no URL" : safe(url.host);
}

/** Returns `say` with a list of names; undefined for none. */
function named(names: unknown, say: (names: string) => string): string | undefined {
  return Array.isArray(names) && names.length > 0
    ? say(listText(names.map((name) => safe(String(name)))))
    : undefined;
}

function joined(parts: readonly (string | undefined)[]): string | undefined {
  const said = parts.filter((part) => part !== undefined);
  return said.length === 0 ? undefined : said.join("; ");
}

function safe(text: string, max = MAX_NAME): string {
  const line = escapeUnprintable(text.replaceAll(/\s+/g, " "));
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}
