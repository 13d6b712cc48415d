/**
 * Rewrites Amplifier's git sources to the raw URL of one file, so that git is not needed. One table row per
 * kind of host.
 */
import type { GitSource, Source } from "../../sdk/plan.ts";
import { decodePercent, hasSpace } from "../../text/escape.ts";
import { describe } from "../../sdk/value_path.ts";

/** A rewritten git source, or the problem with it. */
export type GitResult = { source: Source } | { problem: string };

interface GitHost {
  matches(host: string): boolean;
  /** What is between the repository and the ref in the address of a page for a file or a folder. */
  page: RegExp;
  /** Whether a repository may be nested deeper than `org/repo`. */
  nested: boolean;
  raw(host: string, repository: string, ref: string | null, file: string): string;
}

/** Known hosts. `HEAD` is each host's name of the default branch. */
const HOSTS: readonly GitHost[] = [
  {
    matches: (host) => host === "github.com" || host === "www.github.com",
    page: /^(?:tree|blob)$/,
    nested: false,
    raw: (_, repository, ref, file) =>
      `https://raw.githubusercontent.com/${repository}/${ref ?? "HEAD"}/${file}`,
  },
  {
    matches: (host) => host === "gitlab.com" || host.startsWith("gitlab."),
    page: /^-\/(?:tree|blob)$/,
    nested: true,
    raw: (host, repository, ref, file) => `https://${host}/${repository}/-/raw/${ref ?? "HEAD"}/${file}`,
  },
  {
    matches: (host) => host === "bitbucket.org",
    page: /^src$/,
    nested: false,
    raw: (host, repository, ref, file) => `https://${host}/${repository}/raw/${ref ?? "HEAD"}/${file}`,
  },
  {
    matches: (host) => host === "codeberg.org" || host === "gitea.com" || /^(gitea|forgejo)\./.test(host),
    page: /^src\/(?:branch|tag|commit)$/,
    nested: false,
    raw: (host, repository, ref, file) => `https://${host}/${repository}/raw/${giteaRef(ref)}/${file}`,
  },
];

/** Returns the source of `git+https://host/org/repo[@ref][#subdirectory=path]`. */
export function parseGitUri(text: string, original: string): GitResult {
  const parts = partsOfUri(text, original);
  return "problem" in parts ? parts : rewrite(parts.url, parts.ref, parts.subdirectory, original);
}

/**
 * Returns the URL below which the raw files of `git+https://host/org/repo[@ref][#subdirectory=path]` are, with
 * a slash at its end.
 */
export function parseGitRoot(text: string): { root_url: string; git: GitSource } | { problem: string } {
  const parts = partsOfUri(text, text);
  if ("problem" in parts) return parts;
  const found = readGit(parts.url, parts.ref, parts.subdirectory, text);
  return "problem" in found ? found : { root_url: found.raw(""), git: found.git };
}

function partsOfUri(
  text: string,
  original: string,
): { url: URL; ref: string | null; subdirectory: string | null } | { problem: string } {
  const location = text.slice("git+".length);
  if (!URL.canParse(location)) {
    return { problem: `it is not a valid git URL: received ${describe(original)}` };
  }
  const url = new URL(location);
  const fragment = new URLSearchParams(url.hash.slice(1));
  const unknown = [...fragment.keys()].find((key) => key !== "subdirectory");
  if (unknown !== undefined) {
    return { problem: `the part after "#" may only be subdirectory=path: received ${describe(original)}` };
  }
  const at = url.pathname.indexOf("@");
  const ref = at === -1 ? null : decodePercent(url.pathname.slice(at + 1));
  if (at !== -1) url.pathname = url.pathname.slice(0, at);
  return { url, ref, subdirectory: fragment.get("subdirectory") };
}

/**
 * Returns the `git+https:` source of a repository, folder or file that a text names as a person copies it:
 * the address of its page, with or without `https://`, or `git@host:org/repo`. Undefined for any other text.
 */
export function gitSourceOfPage(text: string): string | undefined {
  const [, name = "", path = ""] = /^(?:https:\/\/|git@)?([\w.-]+)[/:]([^?#]+)/i.exec(text) ?? [];
  const host = HOSTS.find(({ matches }) => matches(name.toLowerCase()));
  if (!host) return undefined;
  const parts = path.split("/").filter((part) => part !== "");
  for (let start = 2; start < parts.length; start++) {
    for (const end of [start + 1, start + 2]) {
      if (!host.page.test(parts.slice(start, end).join("/"))) continue;
      return gitUri(name, parts.slice(0, start), parts[end], parts.slice(end + 1));
    }
  }
  const is_file = /\.[cm]?[jt]sx?$/.test(path);
  if (parts.length === 2 || host.nested && parts.length > 2 && !parts.includes("-")) {
    return is_file ? undefined : gitUri(name, parts);
  }
  const has_scheme = text.toLowerCase().startsWith("https:"); // the host has other files below a repository
  return parts.length < 2 || host.nested || has_scheme
    ? undefined
    : gitUri(name, parts.slice(0, 2), undefined, parts.slice(2));
}

function gitUri(
  host: string,
  repository: readonly string[],
  ref?: string,
  folder: readonly string[] = [],
): string {
  const at = ref === undefined ? "" : `@${ref}`;
  const subdirectory = folder.length === 0 ? "" : `#subdirectory=${folder.join("/")}`;
  return `git+https://${host}/${repository.join("/").replace(/\.git$/, "")}${at}${subdirectory}`;
}

/** Returns the source of `{type: git, url, ref?, subdirectory?}`. */
export function parseGitDict(value: Record<string, unknown>): GitResult {
  const { url, ref = null, subdirectory = null } = value;
  if (typeof url !== "string") return { problem: 'a source of type "git" needs "url"' };
  if (ref !== null && typeof ref !== "string") {
    return { problem: `"ref" must be text: received ${describe(ref)}` };
  }
  if (subdirectory !== null && typeof subdirectory !== "string") {
    return { problem: `"subdirectory" must be text: received ${describe(subdirectory)}` };
  }
  const location = url.startsWith("git+") ? url.slice(4) : url;
  if (!URL.canParse(location) || !location.startsWith("https:")) {
    return { problem: `"url" of a git source must be https: received ${describe(url)}` };
  }
  return rewrite(new URL(location), ref, subdirectory, url);
}

function rewrite(url: URL, ref: string | null, subdirectory: string | null, original: string): GitResult {
  const found = readGit(url, ref, subdirectory, original);
  if ("problem" in found) return found;
  const { git, raw } = found;
  const folder = git.subdirectory?.split("/") ?? [];
  const is_folder = !/\.[cm]?[jt]sx?$/.test(folder.at(-1) ?? "");
  const file = [...folder, ...(is_folder ? ["mod.ts"] : [])].map(encodeURIComponent).join("/");
  return {
    source: {
      kind: "url",
      url: raw(file),
      original,
      via: "git",
      git,
      ...(is_folder ? { folder: true } : {}),
    },
  };
}

/** Returns a repository, and a function from a file's path to its raw URL. */
function readGit(
  url: URL,
  ref: string | null,
  subdirectory: string | null,
  original: string,
): { git: GitSource; raw(file: string): string } | { problem: string } {
  if (url.username || url.password) return { problem: "a git URL must not contain a user name or password" };
  const host = HOSTS.find(({ matches }) => matches(url.host));
  if (!host) {
    return {
      problem: `the URL of raw files on ${describe(url.host)} is unknown; use the https URL of mod.ts`,
    };
  }
  const parts = url.pathname.split("/").filter((part) => part !== "");
  if (parts.length < 2 || !host.nested && parts.length > 2) {
    return { problem: `a git URL must name org and repo: received ${describe(original)}` };
  }
  const repository = parts.join("/").replace(/\.git$/, "");
  if (ref !== null && !isRef(ref)) {
    return { problem: `the part after "@" is not a branch, tag or commit: received ${describe(ref)}` };
  }
  const folder = subdirectory === null
    ? []
    : subdirectory.split("/").filter((part) => part !== "" && part !== ".");
  if (folder.includes("..")) {
    return { problem: `"subdirectory" must stay in the repository: received ${describe(subdirectory)}` };
  }
  const git: GitSource = {
    repository: `https://${url.host}/${repository}`,
    ref,
    subdirectory: folder.length > 0 ? folder.join("/") : null,
  };
  const encodedRef = ref === null ? null : ref.split("/").map(encodeURIComponent).join("/");
  return { git, raw: (file) => host.raw(url.host, repository, encodedRef, file) };
}

/**
 * Returns the ref as Gitea expects it: a full commit is plain, tags begin with `refs/tags/`; the server
 * resolves others as branch or tag.
 */
function giteaRef(ref: string | null): string {
  if (ref === null) return "branch/HEAD";
  if (/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(ref)) return `commit/${ref}`;
  if (ref.startsWith("refs/tags/")) return `tag/${ref.slice("refs/tags/".length)}`;
  if (ref.startsWith("refs/heads/")) return `branch/${ref.slice("refs/heads/".length)}`;
  return /^v?\d+(\.\d+)+/.test(ref) ? `tag/${ref}` : `branch/${ref}`;
}

/** Checks the rules of `git check-ref-format` that matter in a URL. */
function isRef(ref: string): boolean {
  if (ref === "" || ref.length > 250 || ref.startsWith("/") || ref.endsWith("/") || ref.endsWith(".lock")) {
    return false;
  }
  return !ref.includes("..") && !ref.includes("//") && !ref.includes("@{") &&
    !hasSpace(ref) && !/[~^:?*[\\]/.test(ref);
}
