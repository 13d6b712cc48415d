/** Numbers with their units. */

/** Returns a duration with its unit. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`;
}

/** Returns a number of tokens: `950`, `41k`, `1.2M`. */
export function tokens(count: number): string {
  return count < 1_000
    ? `${count}`
    : count < 1e6
    ? `${+(count / 1e3).toFixed(count < 1e4 ? 1 : 0)}k`
    : `${+(count / 1e6).toFixed(1)}M`;
}

/** Returns an amount in dollars with four digits at most. */
export function dollars(amount: string | number): string {
  const value = Number(amount);
  return `$${value >= 1 ? value.toFixed(2) : value.toFixed(4).replace(/0{1,2}$/, "")}`;
}
