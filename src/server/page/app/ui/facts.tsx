/** Small facts: times, durations, costs, ids, states. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { duration } from "./units.ts";

/** The time, once a second while someone looks. */
export const now = signal(Date.now());
setInterval(() => document.hidden || (now.value = Date.now()), 1_000);

/** A point in time, relative; the exact one on hover. Not read aloud each second, as its place might be. */
export function Ago({ time }: { time: string }) {
  return (
    <time dateTime={time} title={new Date(time).toLocaleString()} aria-live="off">
      {ago(now.value - Date.parse(time))}
    </time>
  );
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

/** Time between two points, or since the first; not read aloud each second. */
export function Elapsed({ from, to }: { from: string; to: string | null }) {
  return (
    <span aria-live="off">{duration((to === null ? now.value : Date.parse(to)) - Date.parse(from))}</span>
  );
}

/** Time until a point: minutes and seconds. */
export function Countdown({ to }: { to: string }) {
  void now.value; // drawn again each second; a countdown that begins between two is exact
  const seconds = Math.max(0, Math.ceil((Date.parse(to) - Date.now()) / 1000));
  return (
    <span title={new Date(to).toLocaleString()}>
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")}
    </span>
  );
}

/** A button that copies a text and says so. */
export function Copy({ text, label }: { text: string | (() => string); label: string }) {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async () => {
    const copied = await write(typeof text === "string" ? text : text()).catch(() => false);
    setSaid(copied ? "copied" : "not allowed");
    setTimeout(() => setSaid(null), 1_500);
  };
  return <Button plain onClick={copy}>{said ?? label}</Button>;
}

/** Writes to the clipboard; an address that is not `https` or of this machine has none but the old command. */
async function write(text: string): Promise<boolean> {
  if (isSecureContext) return await navigator.clipboard.writeText(text).then(() => true);
  const box = document.createElement("textarea");
  box.value = text;
  const { activeElement: before } = document;
  (before?.closest("dialog") ?? document.body).append(box); // a modal dialog keeps the focus
  box.select();
  const copied = document.execCommand("copy");
  box.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

const SIGNS: Readonly<Record<string, readonly [sign: string, style: string]>> = {
  queued: ["○", "muted"],
  running: ["●", ""],
  awaiting_approval: ["◷", "waiting"],
  awaiting_limit: ["◷", "waiting"],
  completed: ["✓", "done"],
  incomplete: ["!", "waiting"],
  denied: ["✗", "failed"],
  cancelled: ["■", "muted"],
  failed: ["✗", "failed"],
};

/** All statuses of runs. */
export const STATUSES: readonly string[] = Object.keys(SIGNS);

/** The status of a run as a sign and words. */
export function Status({ status }: { status: string }) {
  const [sign, style] = SIGNS[status] ?? ["●", ""];
  return <span class={style}>{sign} {status.replace("_", " ")}</span>;
}
