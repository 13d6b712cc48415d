/**
 * Decides which files of the folder in which a command is started are used: those that the person trusts as
 * they are now (src/docs/security.md#the-folder). A file is used with the bytes that were compared.
 */
import type { PlanFolder } from "../../app/named_plans.ts";
import { mayBeBundle } from "../../bundle/kinds.ts";
import type { SourcesFile } from "../../app/source_overrides.ts";
import { sha256 } from "../../sdk/digest.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { isHosted } from "../../deploy/host.ts";
import { UsageError } from "../arguments.ts";
import { filePath, fileUrl, flagVariable, homeOf } from "../../settings/paths.ts";
import type { FolderUse as FilesOfSettings } from "../../settings/settings.ts";
import { listText, styleOf, wrapText } from "../terminal/format.ts";
import type { Io, Output } from "../terminal/io.ts";
import { LineInput } from "../terminal/line_input.ts";
import { type FolderFile, FolderFiles, nameIn, SOURCES_FILE, textOf } from "./folder_files.ts";
import type { FileSentence } from "./sentences.ts";
import { type Digests, type TrustRecord, TrustRecords } from "./trust_records.ts";

/** What a command would use of the folder. */
export interface FolderUse extends FilesOfSettings {
  readonly variables: boolean;
  readonly sources: boolean;
  /** Whether a person at a terminal may be asked. */
  readonly asks: boolean;
}

/** What a command uses of the folder. */
export interface UsedFolder {
  /** `preamp.yaml`; null: it is not used. */
  readonly settings: { readonly text: string; readonly url: URL } | null;
  /** Text of `.env`; null: it is not used. */
  readonly variables: string | null;
  readonly sources: SourcesFile | null;
  readonly plans: PlanFolder | null;
  /** Names of the files that are used, of those that were asked for. */
  readonly names: readonly string[];
  /** One line that names the files that are ignored; null: none is. */
  readonly ignored: string | null;
}

/** Milliseconds. A faster answer was typed before the question was displayed, and is ignored. */
const TYPED_AHEAD_MS = 250;

/**
 * Returns whether every file of the folder counts as trusted: `PREAMP_TRUST=1`, as in a container, and on a
 * host such as Deno Deploy, where the folder is what was deployed, this program included.
 *
 * @throws {UsageError} for another value of the variable.
 */
function trustsAll(io: Io): boolean {
  return flagVariable(io, "PREAMP_TRUST") || isHosted(io.env);
}

/**
 * Resolves to what a command uses of the folder in which it is started. Asks the person, once for each state
 * of its files, where there is a terminal.
 *
 * @throws {UsageError} for a trusted file that cannot be read.
 */
export async function openFolder(io: Io, use: FolderUse): Promise<UsedFolder> {
  const home = homeOf(io);
  const files = await FolderFiles.open(io.cwd, home);
  const wanted = await wantedOf(files, use);
  const all_count = trustsAll(io) || files.is_home;
  const trust = await Trust.open(files, home);
  if (!all_count && use.asks && wanted.some((file) => trust.isOpen(file))) await trust.ask(io);
  const isUsed = (file: FolderFile | null): file is FolderFile =>
    file !== null && (all_count || trust.isTrusted(file));
  const own = use.settings ? await files.settings() : null;
  const settings = isUsed(own) ? own : null;
  const variables = use.variables ? await files.variables() : null;
  const sources = use.sources ? await files.sources() : null;
  const plans_url = await files.plansFolder(settings);
  const plans = await plansOf(files, plans_url, use);
  const accepts = all_count ? undefined : (url: URL, bytes: Uint8Array) => trust.accepts(url, bytes);
  const candidates = new Set([...wanted, ...plans]);
  const ignored: FolderFile[] = [...candidates].filter((file) => !isUsed(file));
  return {
    settings: settings && { text: textOf(settings), url: settings.url },
    variables: isUsed(variables) ? textOf(variables) : null,
    sources: isUsed(sources)
      ? {
        name: SOURCES_FILE,
        url: sources.url,
        base_url: files.url,
        ...accepts && { accepts: (bytes: Uint8Array) => accepts(sources.url, bytes) },
      }
      : null,
    plans: use.plans === null ? null : {
      url: plans_url,
      // a bundle reads other files, which the decision is not about
      ...accepts && {
        accepts: async (url, bytes) =>
          !mayBeBundle(new TextDecoder().decode(bytes), url.href) && await accepts(url, bytes),
      },
    },
    names: [...candidates].filter((file) => !ignored.includes(file)).map(({ name }) => name),
    ignored: ignored.length === 0 ? null : trust.ignoredText(ignored),
  };
}

/** What `trustFolder` has done. */
export interface TrustedFolder {
  readonly folder: string;
  readonly files: readonly FileSentence[];
  /** Whether they are trusted now. */
  readonly trusted: boolean;
}

/**
 * Trusts the files of a folder as they are now; at a terminal the person is asked once more.
 *
 * @throws {UsageError} without a home folder, or when the decision cannot be kept.
 */
export async function trustFolder(url: URL, io: Io): Promise<TrustedFolder> {
  const home = requiredHome(io);
  const files = await FolderFiles.open(url, home);
  const all = await files.all();
  const trust = await Trust.open(files, home);
  const unread = all.find(({ digest }) => digest === "");
  if (unread) textOf(unread);
  if (!(io.in.terminal && io.err.terminal)) await trust.trustAll();
  else if (all.some((file) => !trust.isTrusted(file))) await trust.ask(io);
  const { sentencesOf } = await import("./sentences.ts");
  return {
    folder: files.path,
    files: await sentencesOf(all, { cwd: url, env: io.env }),
    trusted: all.every((file) => trust.isTrusted(file)),
  };
}

/** A folder that the person has decided about. */
export interface DecidedFolder {
  readonly folder: string;
  readonly decided_at: string;
  /** Names of the files that are used. */
  readonly trusted: readonly string[];
  /** Names of the files that are not used: they are new, or not as they were trusted. */
  readonly untrusted: readonly string[];
  /** Rules of calls that `preamp chat` does not ask about there. */
  readonly allowed: readonly string[];
}

/** Resolves to the folders that the person has decided about, sorted. @throws {UsageError} without a home. */
export async function decidedFolders(io: Io): Promise<DecidedFolder[]> {
  const home = requiredHome(io);
  const records = (await new TrustRecords(home).list()).filter(({ decided_at }) => decided_at !== "");
  return await Promise.all(records.map(async ({ folder, decided_at, allowed = [] }) => {
    const files = await FolderFiles.open(fileUrl(`${folder}/`), home);
    const trust = await Trust.open(files, home);
    const all = await files.all();
    const [trusted = [], untrusted = []] = [true, false].map((wanted) =>
      all.filter((file) => trust.isTrusted(file) === wanted).map(({ name }) => name)
    );
    return { folder, decided_at, trusted, untrusted, allowed };
  }));
}

/** Forgets what was decided about a folder. Resolves to its path, and whether something was. */
export async function forgetFolder(url: URL, io: Io): Promise<{ folder: string; known: boolean }> {
  const home = requiredHome(io);
  const { path: folder } = await FolderFiles.open(url, home);
  return { folder, known: await new TrustRecords(home).remove(folder) };
}

function requiredHome(io: Io): URL {
  const home = homeOf(io);
  if (home) return home;
  throw new UsageError("Cannot keep what you trust: there is no home folder; set PREAMP_HOME");
}

/**
 * Calls `write`, by which the person changes the source overrides of the folder. The file is trusted
 * afterwards if it was before, or was not there. Resolves to whether it is.
 */
export async function changeSources(io: Io, write: () => Promise<void>): Promise<boolean> {
  const home = homeOf(io);
  const before = await FolderFiles.open(io.cwd, home);
  const known = await before.sources();
  const is_own = known === null || (await Trust.open(before, home)).isTrusted(known);
  await write();
  const after = await FolderFiles.open(io.cwd, home);
  if (is_own) await (await Trust.open(after, home)).trustOne(SOURCES_FILE, await after.sources());
  return is_own;
}

async function wantedOf(files: FolderFiles, use: FolderUse): Promise<FolderFile[]> {
  const settings = use.settings ? await files.settings() : null;
  const found = [
    settings,
    use.variables ? await files.variables() : null,
    use.sources ? await files.sources() : null,
    ...use.plans === null ? [] : await plansOf(files, await files.plansFolder(settings), use),
  ];
  return found.filter((file) => file !== null);
}

async function plansOf(files: FolderFiles, url: URL, { plans }: FolderUse): Promise<FolderFile[]> {
  if (plans === null) return [];
  return await (plans === "all" ? files.plans(url) : files.plans(url, plans.name));
}

/** The decisions of the person about the files of one folder. */
class Trust {
  readonly #records: TrustRecords;
  readonly #files: FolderFiles;
  #record: TrustRecord;

  private constructor(files: FolderFiles, records: TrustRecords, record: TrustRecord) {
    this.#files = files;
    this.#records = records;
    this.#record = record;
  }

  static async open(files: FolderFiles, home: URL | null): Promise<Trust> {
    const records = new TrustRecords(home);
    return new Trust(files, records, await records.read(files.path));
  }

  isTrusted({ name, digest }: Pick<FolderFile, "name" | "digest">): boolean {
    return hasDigest(this.#record.trusted, name, digest);
  }

  /** Whether the person has not decided about a file as it is now. */
  isOpen(file: FolderFile): boolean {
    return !this.isTrusted(file) && !hasDigest(this.#record.refused, file.name, file.digest);
  }

  /** Returns whether bytes of a file are trusted, also by a decision that was made since. */
  async accepts(url: URL, bytes: Uint8Array): Promise<boolean> {
    const file = { name: nameIn(filePath(url), filePath(this.#files.url)), digest: sha256(bytes) };
    if (this.isTrusted(file)) return true;
    if (this.#records.lasting) this.#record = await this.#records.read(this.#files.path);
    return this.isTrusted(file);
  }

  /** Asks the person about all files of the folder that are not trusted, and keeps the answer. */
  async ask(io: Io): Promise<void> {
    const input = new LineInput(io, io.err);
    if (!input.asks) return;
    const all = await this.#files.all();
    io.err.write(await questionText(io, this.#files, all, this.#record));
    while (true) {
      const since = io.monotonic();
      const answer = await input.choose("Use these files?", [
        { value: true, label: "Yes, until one of them changes", letter: "y" },
        { value: false, label: "No, ignore them", letter: "n" },
      ]);
      if (answer === null) return; // asked again the next time
      if (io.monotonic() - since < TYPED_AHEAD_MS) {
        io.err.write("This answer was typed before the question was displayed. Please answer again.\n");
        continue;
      }
      this.#record = decided(this.#record, all, answer);
      return await this.#records.write(this.#record).catch((error) => {
        io.err.write(`The answer is not kept: ${errorMessage(error)}\n`); // such as a home that is read-only
      });
    }
  }

  /** Trusts all files of the folder as they are now. @throws {UsageError} */
  async trustAll(): Promise<void> {
    const all = await this.#files.all();
    this.#record = decided(this.#record, all, true);
    if (all.length > 0) await this.#records.write(this.#record);
  }

  /** Trusts one file as it is now; null: it is not there any more. @throws {UsageError} */
  async trustOne(name: string, file: FolderFile | null): Promise<void> {
    const { [name]: _, ...trusted } = this.#record.trusted;
    this.#record = file
      ? { ...this.#record, decided_at: timestamp(Date.now()), trusted: { ...trusted, [name]: file.digest } }
      : { ...this.#record, trusted };
    await this.#records.write(this.#record);
  }

  /** Returns the line about files that are ignored. */
  ignoredText(files: readonly FolderFile[]): string {
    const text = listText(
      files.map(({ name }) =>
        `${escapeUnprintable(name)}${Object.hasOwn(this.#record.trusted, name) ? " (changed)" : ""}`
      ),
    );
    return `Ignored ${text} of this folder, which is not trusted: preamp trust shows what ${
      files.length === 1 ? "it does, and uses it" : "they do, and uses them"
    }`;
  }
}

function hasDigest(digests: Digests, name: string, digest: string): boolean {
  return digest !== "" && Object.hasOwn(digests, name) && digests[name] === digest;
}

/** Returns a record in which the files are decided about as they are now. */
function decided(record: TrustRecord, files: readonly FolderFile[], is_trusted: boolean): TrustRecord {
  const readable = files.filter(({ digest }) => digest !== "");
  const open = readable.filter(({ name, digest }) => !hasDigest(record.trusted, name, digest));
  const digestsOf = (files: readonly FolderFile[]) =>
    Object.fromEntries(files.map(({ name, digest }) => [name, digest]));
  const decided_at = timestamp(Date.now());
  return is_trusted
    ? { ...record, decided_at, trusted: digestsOf(readable), refused: {} }
    : { ...record, decided_at, refused: digestsOf(open) };
}

/** Resolves to the text of the question: what each file would do, and what has changed. */
async function questionText(
  io: Io,
  { path }: FolderFiles,
  files: readonly FolderFile[],
  { trusted }: TrustRecord,
): Promise<string> {
  const is_new = Object.keys(trusted).length === 0;
  const shown = files.filter(({ name, digest }) => !hasDigest(trusted, name, digest));
  const removed = Object.keys(trusted).filter((name) => files.every((file) => file.name !== name));
  const { bold } = styleOf(io.err);
  const head = is_new
    ? "Files of this folder act only if you trust it"
    : "Files of this folder have changed since you trusted it";
  return [
    `${bold(head)}: ${escapeUnprintable(path)}\n`,
    await filesText(shown, io, is_new ? {} : trusted),
    ...removed.length === 0 || is_new
      ? []
      : [`  Not there any more: ${escapeUnprintable(removed.join(", "))}\n`],
  ].join("");
}

/** Resolves to a paragraph for each file. `known`: digests of earlier states, for the word before a name. */
async function filesText(files: readonly FolderFile[], io: Io, known: Digests): Promise<string> {
  const { sentencesOf } = await import("./sentences.ts");
  const { dim } = styleOf(io.err);
  const is_again = Object.keys(known).length > 0;
  const isKnown = (name: string) => Object.hasOwn(known, name);
  return sentencesText(await sentencesOf(files, io), io.err, ({ names }) => {
    return is_again ? dim(names.some(isKnown) ? "changed: " : "new: ") : "";
  });
}

/** Returns a paragraph for each sentence; `wordOf` returns what is before its name. */
export function sentencesText(
  sentences: readonly FileSentence[],
  output: Output,
  wordOf: (sentence: FileSentence) => string = () => "",
): string {
  const { bold } = styleOf(output);
  const width = Math.max(30, output.columns() - 4);
  const paragraph = (sentence: FileSentence) => {
    const lines = wrapText(sentence.does, width).map((line) => `    ${line}\n`);
    return `  ${wordOf(sentence)}${bold(sentence.name)}\n${lines.join("")}`;
  };
  return sentences.map(paragraph).join("");
}
