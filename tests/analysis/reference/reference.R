# Reference numbers for the tests of the package `analysis`: Rscript reference.R [topic ...]
#
# Run in this folder. Topics (default: all): blocks mcb smooth sequential sufficiency. Each writes
# <topic>.json. The committed numbers were made on Debian 12 (amd64) with the packages
#   r-base-core 4.2.2.20221110-2, r-cran-multcomp 1.4-22-1, r-cran-mvtnorm 1.1-3-1+b1,
#   r-cran-mgcv 1.8-41-1, r-cran-sandwich 3.0-2-1, r-cran-rpact 3.3.4-1,
#   r-cran-jsonlite 1.8.4+dfsg-1.
# Debian has no ldbounds; rpact computes the same boundaries of alpha-spending functions.

library(splines)
library(jsonlite)

SEED <- 20221110
LEVEL <- 0.95

# Rows left out of default.csv in the table with holes: several at the two lowest levels, none at
# MTD 18, two of one seed, so that neither seeds nor levels stay balanced.
REMOVED <- data.frame(
  seed = c(0, 1, 1, 3, 4, 6, 7, 9, 11),
  mtd = c(10, 10, 12, 208, 41.3333, 12, 10, 74.6667, 28)
)

without <- function(data, rows) {
  out <- data[!paste(data$seed, data$mtd) %in% paste(rows$seed, rows$mtd), ]
  stopifnot(nrow(out) == nrow(data) - nrow(rows))
  out
}

tables <- function() {
  full <- read.csv("default.csv")
  list(
    default = full,
    default_with_holes = without(full, REMOVED),
    equation3 = read.csv("equation3.csv")
  )
}

write_topic <- function(topic, content) {
  text <- toJSON(content, digits = I(14), auto_unbox = TRUE, pretty = TRUE, dataframe = "rows")
  writeLines(text, paste0(topic, ".json"))
}

# ---- fits with seeds as blocks -------------------------------------------------------------------

levels_of <- function(data) sort(unique(data$mtd))

block_fit <- function(data) lm(score ~ factor(seed) + factor(mtd), data = data)

# Rows of `contrasts` (K x L, over the levels in ascending order) as rows over the coefficients.
over_coefficients <- function(fit, contrasts) {
  is_level <- grepl("factor(mtd)", names(coef(fit)), fixed = TRUE)
  rows <- matrix(0, nrow(contrasts), length(coef(fit)))
  rows[, is_level] <- contrasts[, -1]
  rows
}

# Estimates and standard errors of contrasts: the pooled variance; each level's own variance (sum of
# its squared residuals over the sum of 1 - leverage), degrees of freedom after Satterthwaite; and
# the sandwich HC2, which takes each run's own squared residual over 1 - leverage.
compare <- function(data, contrasts) {
  fit <- block_fit(data)
  rows <- over_coefficients(fit, contrasts)
  # weight of each run in each estimate, K x runs
  weights <- rows %*% summary(fit)$cov.unscaled %*% t(model.matrix(fit))
  freedom <- tapply(1 - hatvalues(fit), data$mtd, sum)
  variances <- tapply(residuals(fit)^2, data$mtd, sum) / freedom
  parts <- t(rowsum(t(weights^2), data$mtd)) * rep(variances, each = nrow(weights))
  own <- rowSums(parts)
  list(
    estimate = drop(rows %*% coef(fit)),
    se = sqrt(diag(rows %*% vcov(fit) %*% t(rows))),
    se_by_level = sqrt(own),
    df_by_level = own^2 / rowSums(sweep(parts^2, 2, freedom, "/")),
    se_hc2 = sqrt(diag(rows %*% sandwich::vcovHC(fit, type = "HC2") %*% t(rows))),
    correlation = cov2cor(rows %*% vcov(fit) %*% t(rows)),
    df = df.residual(fit),
    level_variances = as.vector(variances),
    level_df = as.vector(freedom)
  )
}

# ---- critical values -----------------------------------------------------------------------------

# One-sided critical value of max t: mvtnorm::pmvt solved for the quantile by Newton's method, which
# takes far fewer evaluations than qmvt in 18 dimensions. `probability_error` is mvtnorm's own bound
# on the error of the probability (99 %) at the quantile; `by_directions` does without mvtnorm.
critical_value <- function(correlation, df) {
  start <- by_directions(correlation, df)
  value <- start$critical
  for (step in 1:4) {
    set.seed(SEED)
    at <- mvtnorm::pmvt(
      upper = rep(value, nrow(correlation)), df = df, corr = correlation,
      abseps = 1e-4, maxpts = 500000
    )
    if (abs(at - LEVEL) < 1e-7) break
    if (step < 4) value <- value + (LEVEL - as.numeric(at)) / start$density
  }
  list(
    critical = value, probability = as.numeric(at), probability_error = attr(at, "error"),
    by_directions = start[c("critical", "se")]
  )
}

# Given the direction of a standard normal vector of dimension r, the largest t exceeds q with a
# probability that the F distribution with (r, df) degrees of freedom gives; the mean is taken over
# random directions, in pairs u and -u.
by_directions <- function(correlation, df, pairs = 50000) {
  set.seed(SEED)
  parts <- eigen(correlation, symmetric = TRUE)
  kept <- parts$values > 1e-10
  root <- parts$vectors[, kept, drop = FALSE] %*% diag(sqrt(parts$values[kept]), sum(kept))
  r <- ncol(root)
  u <- matrix(rnorm(pairs * r), pairs)
  t <- (u / sqrt(rowSums(u^2))) %*% t(root)
  largest <- pmax(c(
    do.call(pmax, as.data.frame(t)), do.call(pmax, as.data.frame(-t))
  ), 1e-12)
  below <- function(q) pf(q^2 / (r * largest^2), r, df)
  value <- uniroot(function(q) mean(below(q)) - LEVEL, c(1.5, 4), tol = 1e-5)$root
  density <- (mean(below(value + 0.01)) - mean(below(value - 0.01))) / 0.02
  # u and -u depend on each other: the standard error is that of the means of pairs
  paired <- rowMeans(matrix(below(value), pairs))
  list(critical = value, se = sd(paired) / sqrt(pairs) / density, density = density)
}

# ---- families of slopes --------------------------------------------------------------------------

# Weights of the least-squares slope on x over levels k..L ("down") or 1..k ("up"), k = 2..L-1.
slopes <- function(x, family) {
  n <- length(x)
  t(sapply(2:(n - 1), function(k) {
    used <- if (family == "up") 1:k else k:n
    weights <- numeric(n)
    centred <- x[used] - mean(x[used])
    weights[used] <- centred / sum(centred^2)
    weights
  }))
}

slope_family <- function(data, family) {
  mtd <- levels_of(data)
  of <- compare(data, slopes(log(mtd), family))
  c(
    list(
      k = 2:(length(mtd) - 1), estimate = of$estimate, se = of$se, t = of$estimate / of$se,
      se_by_level = of$se_by_level, df_by_level = of$df_by_level
    ),
    critical_value(of$correlation, of$df)
  )
}

# ---- topics --------------------------------------------------------------------------------------

blocks_of <- function(data) {
  fit <- block_fit(data)
  mtd <- levels_of(data)
  centre <- diag(length(mtd)) - 1 / length(mtd)
  of <- compare(data, centre)
  tests <- multcomp::glht(fit, linfct = over_coefficients(fit, centre))
  set.seed(SEED)
  simultaneous <- confint(tests,
    level = LEVEL,
    calpha = multcomp::adjusted_calpha(abseps = 1e-5, maxpts = 200000)
  )$confint
  list(
    mtd = mtd, runs = nrow(data), residual_variance = sigma(fit)^2, df = df.residual(fit),
    level_variances = of$level_variances, level_df = of$level_df,
    offsets = of[c("estimate", "se", "se_by_level", "df_by_level", "se_hc2")],
    simultaneous = list(
      critical = attr(simultaneous, "calpha"),
      low = as.vector(simultaneous[, "lwr"]), high = as.vector(simultaneous[, "upr"])
    ),
    down = slope_family(data, "down"), up = slope_family(data, "up")
  )
}

# Equal steps of log MTD: "up" is "down" with the levels in reverse; both have one critical value.
balanced_design <- function(seeds, levels) {
  covariance <- tcrossprod(slopes(seq_len(levels), "down"))
  up <- tcrossprod(slopes(seq_len(levels), "up"))
  stopifnot(all.equal(cov2cor(covariance), cov2cor(up)[(levels - 2):1, (levels - 2):1]))
  df <- (seeds - 1) * (levels - 1)
  message("balanced design: ", seeds, " seeds, ", levels, " levels")
  c(
    list(seeds = seeds, levels = levels, df = df, families = c("down", "up")),
    critical_value(cov2cor(covariance), df)
  )
}

blocks <- function() {
  c(
    list(level = LEVEL, removed = REMOVED),
    lapply(tables(), blocks_of),
    list(balanced = unlist(lapply(c(5, 9, 20), function(levels) {
      lapply(c(3, 5, 10), balanced_design, levels = levels)
    }), recursive = FALSE))
  )
}

mcb_of <- function(data) {
  mtd <- levels_of(data)
  lapply(seq_along(mtd), function(l) {
    contrasts <- diag(length(mtd))[-l, ]
    contrasts[, l] <- -1
    of <- compare(data, contrasts)
    c(
      list(
        mtd = mtd[l], other_mtd = mtd[-l], estimate = of$estimate, se = of$se,
        t = of$estimate / of$se, se_by_level = of$se_by_level, df_by_level = of$df_by_level,
        df = of$df
      ),
      critical_value(of$correlation, of$df)
    )
  })
}

mcb <- function() {
  c(list(level = LEVEL), lapply(tables()[c("default", "default_with_holes")], mcb_of))
}

# Critical values of a band over the rows of `basis`: the largest |deviation| over its standard
# error, coefficients drawn from their normal distribution (Ruppert, Wand and Carroll 2003, section
# 6.5), and from Student's t, which allows for the estimated residual variance.
band <- function(rows, covariance, df, draws = 100000) {
  set.seed(SEED)
  parts <- eigen(covariance, symmetric = TRUE)
  root <- parts$vectors %*% diag(sqrt(pmax(parts$values, 0)))
  scaled <- rows %*% root / sqrt(rowSums((rows %*% root)^2))
  drawn <- scaled %*% matrix(rnorm(draws * ncol(root)), ncol(root))
  largest <- apply(abs(drawn), 2, max)
  list(
    normal = quantile(largest, LEVEL, names = FALSE),
    student = quantile(largest / sqrt(rchisq(draws, df) / df), LEVEL, names = FALSE)
  )
}

smooth_of <- function(data, k) {
  data$x <- log(data$mtd)
  levels <- unique(sort(data$x))
  knots <- quantile(levels, seq(0, 1, length.out = k), names = FALSE)
  fit <- mgcv::gam(score ~ factor(seed) + s(x, bs = "cr", k = k, fx = TRUE),
    data = data, knots = list(x = knots)
  )
  rows_at <- function(x) {
    rows <- predict(fit, data.frame(x = x, seed = data$seed[1]), type = "lpmatrix")
    rows[, !grepl("s(x)", colnames(rows), fixed = TRUE)] <- 0
    rows
  }
  grid <- seq(min(levels), max(levels), length.out = 50)
  centred <- function(points) {
    rows <- sweep(rows_at(grid), 2, colMeans(rows_at(points)))
    list(
      fit = drop(rows %*% coef(fit)), se = sqrt(rowSums((rows %*% vcov(fit)) * rows)),
      critical = band(rows, vcov(fit), df.residual(fit))
    )
  }
  list(
    k = k, knots = knots, residual_df = df.residual(fit), residual_variance = fit$sig2,
    log_mtd = grid, centred_over_levels = centred(levels), centred_over_grid = centred(grid)
  )
}

smooth <- function() {
  data <- tables()[c("default", "default_with_holes", "equation3")]
  c(
    list(level = LEVEL, draws = 100000),
    lapply(data, function(table) lapply(c(4, 5), smooth_of, data = table))
  )
}

sequential <- function() {
  looks <- list(c(3, 5, 7, 10) / 10, c(5, 10) / 10, (1:5) / 5)
  cases <- expand.grid(
    rates = seq_along(looks), alpha = c(0.05, 0.025), spending = c("asOF", "asP")
  )
  lapply(seq_len(nrow(cases)), function(i) {
    design <- rpact::getDesignGroupSequential(
      typeOfDesign = as.character(cases$spending[i]), sided = 1, alpha = cases$alpha[i],
      informationRates = looks[[cases$rates[i]]], tolerance = 1e-10
    )
    list(
      spending = as.character(cases$spending[i]), alpha = cases$alpha[i],
      information_rates = looks[[cases$rates[i]]], critical = design$criticalValues,
      nominal_p = design$stageLevels, alpha_spent = design$alphaSpent
    )
  })
}

sufficiency <- function() {
  data <- read.csv("grid_in_batch.csv")
  data$configuration <- factor(paste(data$ema_decay, data$queue_size))
  data$x <- log(data$mtd)
  data$momentum <- log(1 / (1 - data$ema_decay))
  data$queue <- log(data$queue_size / data$batch_size)
  # interior knots at quantiles of the distinct values, boundary knots at the range
  knots <- function(values, df) {
    quantile(unique(sort(values)), seq_len(df - 1) / df, names = FALSE)
  }
  at <- list(mtd = knots(data$x, 3), ema = knots(data$momentum, 2), queue = knots(data$queue, 2))
  models <- list(
    seeds = score ~ factor(seed),
    mtd = score ~ factor(seed) + ns(x, knots = at$mtd),
    ema = score ~ factor(seed) + ns(momentum, knots = at$ema),
    queue = score ~ factor(seed) + ns(queue, knots = at$queue),
    ema_queue = score ~ factor(seed) + ns(momentum, knots = at$ema) + ns(queue, knots = at$queue),
    mtd_ema_queue = score ~ factor(seed) + ns(x, knots = at$mtd) +
      ns(momentum, knots = at$ema) + ns(queue, knots = at$queue),
    additive = score ~ factor(seed) + factor(ema_decay) + factor(queue_size),
    configurations = score ~ factor(seed) + factor(ema_decay) * factor(queue_size)
  )
  fits <- lapply(models, function(model) {
    environment(model) <- environment()
    lm(model, data = data)
  })
  rss <- sapply(fits, deviance)
  same <- deviance(lm(score ~ factor(seed) + configuration, data = data))
  stopifnot(all.equal(same, rss[["configurations"]]))
  test <- function(small, large) {
    table <- anova(fits[[small]], fits[[large]])
    list(
      small = small, large = large, F = table$F[2], df_numerator = table$Df[2],
      df_denominator = table$Res.Df[2], p = table[["Pr(>F)"]][2]
    )
  }
  pairs <- list(
    c("mtd", "mtd_ema_queue"), c("ema_queue", "mtd_ema_queue"), c("ema", "ema_queue"),
    c("queue", "ema_queue"), c("additive", "configurations"), c("mtd", "configurations"),
    c("ema", "configurations"), c("queue", "configurations"), c("ema_queue", "configurations"),
    c("mtd_ema_queue", "configurations"), c("seeds", "configurations")
  )
  between <- rss[["seeds"]] - rss[["configurations"]]
  list(
    interior_knots = lapply(at, I),
    boundary_knots = list(
      mtd = range(data$x), ema = range(data$momentum), queue = range(data$queue)
    ),
    models = lapply(names(models), function(name) {
      list(
        model = name, formula = paste(deparse(models[[name]], width.cutoff = 500), collapse = ""),
        residual_sum_of_squares = rss[[name]], residual_df = df.residual(fits[[name]]),
        # share of the sum of squares between configurations
        r_squared_between = (rss[["seeds"]] - rss[[name]]) / between
      )
    }),
    tests = lapply(pairs, function(pair) test(pair[1], pair[2]))
  )
}

TOPICS <- list(
  blocks = blocks, mcb = mcb, smooth = smooth, sequential = sequential, sufficiency = sufficiency
)
chosen <- commandArgs(trailingOnly = TRUE)
if (length(chosen) == 0) chosen <- names(TOPICS)
for (topic in chosen) write_topic(topic, TOPICS[[topic]]())
