BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE mtdlab_arrays (
	trial_id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	"values" BLOB NOT NULL, 
	PRIMARY KEY (trial_id, name), 
	FOREIGN KEY(trial_id) REFERENCES mtdlab_trials (id) ON DELETE CASCADE
);
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/loss',X'EC0F233F7C218A3EDBD3273DF764873C');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/fgsm_changed',X'7A32503F59AA693F7B4C1B3F49C03A3F');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/ema_decay',X'022B0B3FE8606F3FC7DB503F6978333B');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/queue_fill',X'D97E5B3F0791093DB3CA3A3F11DF333E');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/score',X'0000C07F349D0A3F0000C07F766AD83E');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/alignment',X'0000C07F3B88FE3D0000C07F36AE253F');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/uniformity',X'0000C07F6271C43E0000C07F06187B3F');
INSERT INTO "mtdlab_arrays" VALUES(1,'curve/mean_cosine',X'0000C07F8084263F0000C07FB520C73E');
INSERT INTO "mtdlab_arrays" VALUES(1,'spectrum/before',X'76B3383F9F7D063F6ABFF83E06D89E3EBD560A3E');
INSERT INTO "mtdlab_arrays" VALUES(1,'spectrum/after',X'7A1D6F3F7AB5633FC74F123FEF30B73E11CCA43E');
INSERT INTO "mtdlab_arrays" VALUES(1,'items/sts_test/abababababababababababababababababababababababababababababababab',X'0C24183FB302AD3E4982C83E05E9633F009C683E31891F3F3D10AC3D2B28553F');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/loss',X'07F2853ED5D3983E1971503F6D3EBC3D');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/fgsm_changed',X'30A0193FF1823A3F2469403E6EE1613D');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/ema_decay',X'C9C88C3E884D283FA4F00F3FECA9193E');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/queue_fill',X'C881DD3E11572B3F3C77D83E5F18223F');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/score',X'0000C07F56DD2E3F0000C07F23BF3F3E');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/alignment',X'0000C07F38D5023F0000C07F5C8B463F');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/uniformity',X'0000C07F7B996C3F0000C07F2E9A313F');
INSERT INTO "mtdlab_arrays" VALUES(3,'curve/mean_cosine',X'0000C07FEF1AD63D0000C07F4B6B623F');
INSERT INTO "mtdlab_arrays" VALUES(3,'spectrum/before',X'8D67593F20082E3FC6F9243F783E043F5326D03E');
INSERT INTO "mtdlab_arrays" VALUES(3,'spectrum/after',X'D969643FC4B35C3F8E1C1D3FEAEB173FF059E03E');
INSERT INTO "mtdlab_arrays" VALUES(3,'items/sts_test/abababababababababababababababababababababababababababababababab',X'AF50543F3401FF3EDE48313FBC94AD3E17D8053FAA695D3EB13DCE3D5D1F1E3D');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/loss',X'D568AF3D747E723E53204D3F9208153F');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/fgsm_changed',X'85C6C03DD0C2DD3E3646F53E9992233E');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/ema_decay',X'400D3C3FE0CCE83D104FC83E1649043F');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/queue_fill',X'477BDC3E6E38163FF0E23C3FEECD743F');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/score',X'0000C07F3107263F0000C07F7EDF953E');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/alignment',X'0000C07FB134793F0000C07FC6C2A03E');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/uniformity',X'0000C07F3DCD153F0000C07F7BF5453F');
INSERT INTO "mtdlab_arrays" VALUES(4,'curve/mean_cosine',X'0000C07FAAFB343F0000C07FFD10BA3D');
INSERT INTO "mtdlab_arrays" VALUES(4,'spectrum/before',X'6A746E3F8816293F974D213FD5A8983EEC29543E');
INSERT INTO "mtdlab_arrays" VALUES(4,'spectrum/after',X'7773543FC4E33D3FCBDF383FE55B283FF0F65F3E');
INSERT INTO "mtdlab_arrays" VALUES(4,'items/sts_test/abababababababababababababababababababababababababababababababab',X'E9CB2E3F7CF0513FE86DDB3E853A423F14E4603F1B8DD13D6B8A593FD8B0C93E');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/loss',X'206C713F5DE6023F1CEB793F5B8DA53D');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/fgsm_changed',X'AC7B1B3FD9C2C03E66494D3F6BB7323E');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/ema_decay',X'7D235F3FBE3F0B3F91F7663F774DF43E');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/queue_fill',X'026ADC3E69F8493F73F17B3FB34CBD3E');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/score',X'0000C07FACD46D3F0000C07FB3DD1B3F');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/alignment',X'0000C07F955B713F0000C07FE698083E');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/uniformity',X'0000C07FBDBBFC3E0000C07FA665753F');
INSERT INTO "mtdlab_arrays" VALUES(5,'curve/mean_cosine',X'0000C07F4324653E0000C07FC723243F');
INSERT INTO "mtdlab_arrays" VALUES(5,'spectrum/before',X'5269703FB7056E3FFDFE143F6BC3FB3E7521893E');
INSERT INTO "mtdlab_arrays" VALUES(5,'spectrum/after',X'0A48453F174B313F49012D3F5FBBF33E03305E3E');
INSERT INTO "mtdlab_arrays" VALUES(5,'items/sts_test/abababababababababababababababababababababababababababababababab',X'105E433E1D7AEB3ED33FB93ECCD32E3E02AA623EE366763F715C623FC1BBC33E');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/loss',X'AC144E3F35D54E3F60EC033F8F54923E');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/fgsm_changed',X'71E65C3DED48C43E6623D13E7B72393D');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/ema_decay',X'2AB6473D02CA7F3FA901273F7123703E');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/queue_fill',X'72B1DE3E4464793F33CE653F861F583F');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/score',X'0000C07F836DFC3E0000C07F440C793D');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/alignment',X'0000C07FB4FB8A3E0000C07FDC82833D');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/uniformity',X'0000C07F1FBE5E3F0000C07F193C653F');
INSERT INTO "mtdlab_arrays" VALUES(6,'curve/mean_cosine',X'0000C07F6CB1973C0000C07FB43E9D3A');
INSERT INTO "mtdlab_arrays" VALUES(6,'spectrum/before',X'21644E3F76DC003FD392DF3EE25EA63E8321503E');
INSERT INTO "mtdlab_arrays" VALUES(6,'spectrum/after',X'4C874C3FAFD1323F93A7E53E0206A23E929D183E');
INSERT INTO "mtdlab_arrays" VALUES(6,'items/sts_test/abababababababababababababababababababababababababababababababab',X'3A2B713ED0BAA33EE8C44C3F38CF013F73A2013FE0DC713E94296E3CC3E76E3F');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/loss',X'EC0F233F7C218A3EDBD3273DF764873C');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/fgsm_changed',X'7A32503F59AA693F7B4C1B3F49C03A3F');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/ema_decay',X'022B0B3FE8606F3FC7DB503F6978333B');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/queue_fill',X'D97E5B3F0791093DB3CA3A3F11DF333E');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/score',X'0000C07F349D0A3F0000C07F766AD83E');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/alignment',X'0000C07F3B88FE3D0000C07F36AE253F');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/uniformity',X'0000C07F6271C43E0000C07F06187B3F');
INSERT INTO "mtdlab_arrays" VALUES(9,'curve/mean_cosine',X'0000C07F8084263F0000C07FB520C73E');
INSERT INTO "mtdlab_arrays" VALUES(9,'spectrum/before',X'76B3383F9F7D063F6ABFF83E06D89E3EBD560A3E');
INSERT INTO "mtdlab_arrays" VALUES(9,'spectrum/after',X'7A1D6F3F7AB5633FC74F123FEF30B73E11CCA43E');
INSERT INTO "mtdlab_arrays" VALUES(9,'items/sts_test/abababababababababababababababababababababababababababababababab',X'0C24183FB302AD3E4982C83E05E9633F009C683E31891F3F3D10AC3D2B28553F');
CREATE TABLE mtdlab_items (
	study_id INTEGER NOT NULL, 
	task VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	count INTEGER NOT NULL, 
	gold BLOB, 
	PRIMARY KEY (study_id, task, digest), 
	FOREIGN KEY(study_id) REFERENCES mtdlab_studies (id) ON DELETE CASCADE
);
INSERT INTO "mtdlab_items" VALUES(1,'sts_test','abababababababababababababababababababababababababababababababab','spearman',8,X'0000000000000000000000000000F03F0000000000000040000000000000084000000000000010400000000000000000000000000000F03F0000000000000040');
INSERT INTO "mtdlab_items" VALUES(2,'sts_test','abababababababababababababababababababababababababababababababab','spearman',8,X'0000000000000000000000000000F03F0000000000000040000000000000084000000000000010400000000000000000000000000000F03F0000000000000040');
CREATE TABLE mtdlab_looks (
	study_id INTEGER NOT NULL, 
	look INTEGER NOT NULL, 
	seeds INTEGER NOT NULL, 
	trials JSON NOT NULL, 
	alpha DOUBLE NOT NULL, 
	spent DOUBLE NOT NULL, 
	p_value DOUBLE, 
	verdict VARCHAR NOT NULL, 
	decision VARCHAR NOT NULL, 
	added JSON NOT NULL, 
	PRIMARY KEY (study_id, look), 
	FOREIGN KEY(study_id) REFERENCES mtdlab_studies (id) ON DELETE CASCADE
);
CREATE TABLE mtdlab_plans (
	study VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	trials INTEGER NOT NULL, 
	"plan" JSON NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	PRIMARY KEY (study, position)
);
INSERT INTO "mtdlab_plans" VALUES('grid',0,0,'{"study": "grid", "metric": "sts_test", "margin": 0.5, "alpha": 0.05, "beyond_run": "leave-out", "looks": [2]}','e970475330d3eab784aeb93f970b92ec97d52e9bdbb6780fe848509635bd375c');
INSERT INTO "mtdlab_plans" VALUES('drawn',0,0,'{"study": "drawn", "metric": "sts_dev", "margin": 0.5, "alpha": 0.05, "beyond_run": "leave-out", "looks": [2]}','d41d831215e1f0c4298a90296b8180fd8150d4e902ee4b927a2249c6cb4fce90');
CREATE TABLE mtdlab_schema (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "mtdlab_schema" VALUES(1,3);
CREATE TABLE mtdlab_scores (
	trial_id INTEGER NOT NULL, 
	task VARCHAR NOT NULL, 
	score DOUBLE, 
	PRIMARY KEY (trial_id, task), 
	FOREIGN KEY(trial_id) REFERENCES mtdlab_trials (id) ON DELETE CASCADE
);
INSERT INTO "mtdlab_scores" VALUES(1,'sts_dev',46.0);
INSERT INTO "mtdlab_scores" VALUES(1,'sts_test',45.0);
INSERT INTO "mtdlab_scores" VALUES(3,'sts_dev',48.5);
INSERT INTO "mtdlab_scores" VALUES(3,'sts_test',47.5);
INSERT INTO "mtdlab_scores" VALUES(4,'sts_dev',48.5);
INSERT INTO "mtdlab_scores" VALUES(4,'sts_test',47.5);
INSERT INTO "mtdlab_scores" VALUES(5,'sts_dev',47.0);
INSERT INTO "mtdlab_scores" VALUES(5,'sts_test',46.0);
INSERT INTO "mtdlab_scores" VALUES(6,'sts_dev',47.0);
INSERT INTO "mtdlab_scores" VALUES(6,'sts_test',46.0);
INSERT INTO "mtdlab_scores" VALUES(9,'sts_dev',4.81952540157092954595e+01);
INSERT INTO "mtdlab_scores" VALUES(9,'sts_test',4.71952540157092954604e+01);
CREATE TABLE mtdlab_studies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	identity JSON NOT NULL, 
	file_text VARCHAR NOT NULL, 
	invocation VARCHAR NOT NULL, 
	description VARCHAR NOT NULL, 
	imports JSON NOT NULL, 
	methods JSON NOT NULL, 
	precision VARCHAR, 
	model JSON, 
	definition JSON NOT NULL, 
	folder VARCHAR, 
	distributions JSON NOT NULL, 
	inputs JSON, 
	chosen JSON, 
	artifacts VARCHAR, 
	next_number INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	UNIQUE (name)
);
INSERT INTO "mtdlab_studies" VALUES(1,'grid','sts_test','{"metric": "sts_test", "select_by": "sts_dev", "sampler": "grid", "pruner": "none", "trainer": {"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}, "search": {"ema_decay": "searched", "queue_size": "searched", "initial_queue_size": "searched"}}','
study: grid
metric: sts_test
trainer: {batch_size: 8, steps: 4, evaluate_every: 2}
search:
  ema_decay: [0.5, 0.75]
  queue_size: {times: batch_size, values: [1, 2]}
  initial_queue_size: [0]
seeds: [0, 1]
','{"command": "sweep", "arguments": ["grid.yaml"], "options": {}}','','{}','{"mocose": {"title": "MoCoSE", "settings": {"method": {"symbol": "", "unit": "", "description": "training method; `mtdlab methods` lists them", "default": "mocose"}, "preset": {"symbol": "", "unit": "", "description": "set of values for settings that are not given; `published-code`: those of the program that the method''s authors published; `mtdlab methods` lists each method''s", "default": "intended"}, "encoder": {"symbol": "", "unit": "", "description": "`builtin`, a folder, or a Hugging Face name", "default": "builtin"}, "pooling": {"symbol": "", "unit": "", "description": "how token vectors become a sentence vector; not given: that of the encoder''s `1_Pooling/config.json`, if it has one", "default": "cls"}, "training_pooling": {"symbol": "", "unit": "", "description": "pooling during training, where it is not that of evaluation; `same`: `pooling`", "default": "same"}, "prompt": {"symbol": "", "unit": "", "description": "text around each sentence, in training and evaluation: `{sentence}` stands for the sentence, `{mask}` for the mask token that the pooling `mask` reads; empty: none", "default": ""}, "segment_length": {"symbol": "", "unit": "tokens", "description": "tokens of the segments into which a sentence is cut; its vector is the mean of theirs, weighted by length; 0: not cut", "default": 0}, "corpus": {"symbol": "", "unit": "", "description": "training text: `builtin`, a file, a folder, `dataset:NAME#COLUMN`, or `pairs:FILE`, whose two texts a line are the two views", "default": "builtin"}, "evaluation": {"symbol": "", "unit": "", "description": "graded pairs behind `sts_dev` and `sts_test`: `builtin`, a folder with `dev.tsv` and `test.tsv` (first sentence, second, score), or one in SentEval''s layout or STS-B''s", "default": "builtin"}, "tasks": {"symbol": "", "unit": "", "description": "tasks scored at the end of each trial: `[STS12, SICKR]`, `sts`, `transfer`, `beir:FOLDER`, `mteb:TASK`, `evaluator` (the function of --evaluator)", "default": ""}, "select_on": {"symbol": "", "unit": "", "description": "pairs on which the checkpoint is selected, or the dev data of one of `tasks`: `beir:FOLDER:dev`, `evaluator:KEY:dev`; `last`: none is selected, the checkpoint is that of the last step; `test`, and `sts_average`, the average of the STS test sets in the folder of `evaluation` (its test pairs where there are none), are for reproducing published selections and are stated in every figure", "default": "dev"}, "batch_size": {"symbol": "N", "unit": "sentences", "description": "sentences per training step", "default": 64}, "temperature": {"symbol": "\u03c4", "unit": "", "description": "temperature of the contrastive loss", "default": 0.05}, "augmentation": {"symbol": "", "unit": "", "description": "augmentations in addition to dropout, joined with `+`", "default": "none"}, "augmentation_draw": {"symbol": "", "unit": "", "description": "what cut-offs and position shuffle may change: a sentence''s tokens but [CLS]; `published-code`: any of `max_length` positions, at least one, and one permutation for a whole batch, as in MoCoSE''s program", "default": "tokens"}, "loss_weight": {"symbol": "", "unit": "", "description": "factor of the loss before its gradient is computed; recorded losses are without it", "default": 1.0}, "learning_rate": {"symbol": "", "unit": "", "description": "highest learning rate of AdamW; after `warmup_steps` it decays linearly to 0", "default": 3e-05}, "warmup_steps": {"symbol": "", "unit": "steps", "description": "steps over which the learning rate rises linearly from 0; 0: none", "default": 0}, "weight_decay": {"symbol": "", "unit": "", "description": "weight decay of AdamW", "default": 1e-06}, "weight_decay_exceptions": {"symbol": "", "unit": "", "description": "parameters without weight decay: none, or biases and LayerNorms", "default": "none"}, "adam_beta1": {"symbol": "\u03b2\u2081", "unit": "", "description": "decay of AdamW''s mean of gradients", "default": 0.9}, "adam_beta2": {"symbol": "\u03b2\u2082", "unit": "", "description": "decay of AdamW''s mean of squared gradients", "default": 0.999}, "adam_epsilon": {"symbol": "", "unit": "", "description": "\u03b5 in the denominator of AdamW''s step", "default": 1e-08}, "adam_bias_correction": {"symbol": "", "unit": "", "description": "whether AdamW corrects both means for their start at 0", "default": true}, "adam_formula": {"symbol": "", "unit": "", "description": "order within AdamW''s step: `torch`: decay, then a step with \u03b5 after the bias correction; `transformers` (its version 4): a step with \u03b5 before the bias correction, then decay", "default": "torch"}, "max_gradient_norm": {"symbol": "", "unit": "", "description": "L2 norm of all gradients together above which they are scaled down to it; 0: no clipping", "default": 0.0}, "dropout": {"symbol": "", "unit": "", "description": "dropout rate of encoder and heads", "default": 0.1}, "dropout_fields": {"symbol": "", "unit": "", "description": "fields of the encoder''s configuration that are dropout rates, for a family that is not known: `[resid_pdrop]`; `none`: it has no dropout; empty: those of a known family", "default": ""}, "lora_rank": {"symbol": "", "unit": "", "description": "rank of the adapters that are trained instead of the encoder''s weights (LoRA, extra `peft`); 0: the weights themselves are trained", "default": 0}, "lora_alpha": {"symbol": "", "unit": "", "description": "scale of the adapters: their output is multiplied by `lora_alpha` / `lora_rank`", "default": 16}, "lora_targets": {"symbol": "", "unit": "", "description": "layers with adapters: `all-linear`, or ends of their names: `[q_proj, v_proj]`", "default": "all-linear"}, "max_length": {"symbol": "", "unit": "tokens", "description": "tokens per training sentence; longer sentences are truncated", "default": 32}, "steps": {"symbol": "", "unit": "steps", "description": "training steps", "default": 15625}, "sentences": {"symbol": "", "unit": "sentences", "description": "training sentences in place of `steps`, which are then \u230a`sentences` / `batch_size`\u230b; a document or a pair counts as one", "default": null}, "evaluate_every": {"symbol": "", "unit": "steps", "description": "steps between two evaluations", "default": 100}, "probe_every": {"symbol": "", "unit": "steps", "description": "steps between two measurements of the change of keys, on 64 sentences; 0: none", "default": 0}, "seed": {"symbol": "", "unit": "", "description": "random seed of a run; a study lists its seeds under `seeds`", "default": 0}, "device": {"symbol": "", "unit": "", "description": "`auto`, `cpu`, `cuda`, or `cuda:1`", "default": "auto"}, "precision": {"symbol": "", "unit": "", "description": "`auto`: bfloat16 on hardware with instructions for it, else float32", "default": "auto"}, "head_initialisation": {"symbol": "", "unit": "", "description": "initial weights of the heads: those of torch; `normal`: normal with standard deviation 0.02, biases 0; `bert`: the same, and the pooler that was pre-trained with the encoder, if it has one", "default": "torch"}, "ema_decay": {"symbol": "\u03b7", "unit": "", "description": "decay of the moving average of weights (momentum encoder) per step", "default": 0.85}, "target_initialisation": {"symbol": "", "unit": "", "description": "weights that the momentum encoder starts from: those of the encoder, or random ones, as before pre-training", "default": "copy"}, "queue_size": {"symbol": "K", "unit": "keys", "description": "keys of earlier batches that serve as negatives", "default": 512}, "ema_decay_end": {"symbol": "", "unit": "", "description": "end of a cosine schedule of the EMA decay", "default": null}, "ema_schedule_steps": {"symbol": "", "unit": "steps", "description": "length of that schedule; by default `steps`", "default": null}, "ema_order": {"symbol": "", "unit": "", "description": "when the momentum encoder is updated; `before-target`: before the forward pass of the target branch, as in the published program", "default": "after-step"}, "initial_queue_size": {"symbol": "K_s", "unit": "keys", "description": "random unit vectors that the queue starts with; by default min(128, K)", "default": 128}, "queue_slice": {"symbol": "", "unit": "", "description": "positions that enter the loss once the queue is full, 0 the newest: `0-256,768-1024`", "default": "all"}, "queue_fill": {"symbol": "", "unit": "", "description": "filling of the queue; `published`: with the excess of the authors'' program", "default": "exact"}, "queue_clusters": {"symbol": "", "unit": "", "description": "centroids that replace the queue''s keys: 1 their mean, k those of k-means; 0 none", "default": 0}, "in_batch_negatives": {"symbol": "", "unit": "", "description": "whether other keys of the batch are negatives too; false: the queue alone (equation 3)", "default": true}, "equivalent_negatives": {"symbol": "\u03b1", "unit": "", "description": "negatives to whose sum that of the negatives in use is scaled, so that the size of the loss does not depend on their number (EqCo); 0: it is not scaled", "default": 0}, "positive_branch": {"symbol": "", "unit": "", "description": "branch that makes the positive of a query and the in-batch negatives; `online`: with gradient and without the prediction head, so that the EMA decay acts on the queue alone", "default": "target"}, "target": {"symbol": "", "unit": "", "description": "weights of the target branch: the average of the online branch''s; `frozen`: those it starts with, embeddings included, so that keys do not age and there is no MTD", "default": "ema"}, "detach_keys": {"symbol": "", "unit": "", "description": "whether gradients through the keys are stopped", "default": true}, "target_dropout": {"symbol": "", "unit": "", "description": "whether the target branch uses dropout", "default": true}, "augmented_branch": {"symbol": "", "unit": "", "description": "branch that reads the text changed by `augmentation`; the other one reads the original text", "default": "online"}, "fgsm_epsilon": {"symbol": "\u03b5", "unit": "", "description": "step of the FGSM perturbation of the word embeddings; 0: none", "default": 5e-09}, "fgsm_gradient": {"symbol": "", "unit": "", "description": "batch whose gradient FGSM uses; `current` needs a second pass per step", "default": "previous"}, "projection_layers": {"symbol": "", "unit": "layers", "description": "layers of the projection head", "default": 1}, "prediction_layers": {"symbol": "", "unit": "layers", "description": "layers of the prediction head", "default": 2}, "prediction_dim": {"symbol": "", "unit": "", "description": "dimension of queries, keys and queue: of the outputs of projection and prediction head; by default the encoder''s", "default": null}, "predictor_hidden_dim": {"symbol": "", "unit": "", "description": "dimension inside the prediction head; by default that of its output", "default": null}, "head_norm_eps": {"symbol": "", "unit": "", "description": "\u03b5 of the LayerNorms in the heads", "default": 1e-05}}}}','float32',NULL,'{"study": "grid", "metric": "sts_test", "trainer": {"batch_size": 8, "steps": 4, "evaluate_every": 2}, "search": {"ema_decay": [0.5, 0.75], "queue_size": {"times": "batch_size", "values": [1, 2]}, "initial_queue_size": [0]}, "seeds": [0, 1]}','/studies','{"ema_decay": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.5, \"high\": 0.75, \"log\": false}}", "queue_size/batch_size": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 1.0, \"high\": 2.0, \"log\": false}}", "initial_queue_size": "{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 0, \"high\": 0}}"}','{"versions": {"Python": "3.11.7", "mtdlab": "0.1.0", "torch": "2.13.0+cpu", "transformers": "5.23.0", "optuna": "5.0.0", "numpy": "2.4.6", "commit": "cdbf163-dirty"}}',NULL,NULL,7,3);
INSERT INTO "mtdlab_studies" VALUES(2,'drawn','sts_dev','{"metric": "sts_dev", "select_by": "sts_dev", "sampler": "random", "pruner": "median", "trainer": {"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}, "search": {"ema_decay": "Range(low=0.5, high=0.9, log=False, step=None, integer=False)", "queue_size": "Range(low=8, high=64, log=False, step=8, integer=True)"}}','
study: drawn
metric: sts_dev
trainer: {batch_size: 8, steps: 4, evaluate_every: 2, initial_queue_size: 0}
search:
  ema_decay: {low: 0.5, high: 0.9}
  queue_size: {low: 8, high: 64, step: 8}
sampler: random
pruner: median
trials: 3
seeds: [0, 1]
','{"command": "sweep", "arguments": ["drawn.yaml"], "options": {}}','','{}','{"mocose": {"title": "MoCoSE", "settings": {"method": {"symbol": "", "unit": "", "description": "training method; `mtdlab methods` lists them", "default": "mocose"}, "preset": {"symbol": "", "unit": "", "description": "set of values for settings that are not given; `published-code`: those of the program that the method''s authors published; `mtdlab methods` lists each method''s", "default": "intended"}, "encoder": {"symbol": "", "unit": "", "description": "`builtin`, a folder, or a Hugging Face name", "default": "builtin"}, "pooling": {"symbol": "", "unit": "", "description": "how token vectors become a sentence vector; not given: that of the encoder''s `1_Pooling/config.json`, if it has one", "default": "cls"}, "training_pooling": {"symbol": "", "unit": "", "description": "pooling during training, where it is not that of evaluation; `same`: `pooling`", "default": "same"}, "prompt": {"symbol": "", "unit": "", "description": "text around each sentence, in training and evaluation: `{sentence}` stands for the sentence, `{mask}` for the mask token that the pooling `mask` reads; empty: none", "default": ""}, "segment_length": {"symbol": "", "unit": "tokens", "description": "tokens of the segments into which a sentence is cut; its vector is the mean of theirs, weighted by length; 0: not cut", "default": 0}, "corpus": {"symbol": "", "unit": "", "description": "training text: `builtin`, a file, a folder, `dataset:NAME#COLUMN`, or `pairs:FILE`, whose two texts a line are the two views", "default": "builtin"}, "evaluation": {"symbol": "", "unit": "", "description": "graded pairs behind `sts_dev` and `sts_test`: `builtin`, a folder with `dev.tsv` and `test.tsv` (first sentence, second, score), or one in SentEval''s layout or STS-B''s", "default": "builtin"}, "tasks": {"symbol": "", "unit": "", "description": "tasks scored at the end of each trial: `[STS12, SICKR]`, `sts`, `transfer`, `beir:FOLDER`, `mteb:TASK`, `evaluator` (the function of --evaluator)", "default": ""}, "select_on": {"symbol": "", "unit": "", "description": "pairs on which the checkpoint is selected, or the dev data of one of `tasks`: `beir:FOLDER:dev`, `evaluator:KEY:dev`; `last`: none is selected, the checkpoint is that of the last step; `test`, and `sts_average`, the average of the STS test sets in the folder of `evaluation` (its test pairs where there are none), are for reproducing published selections and are stated in every figure", "default": "dev"}, "batch_size": {"symbol": "N", "unit": "sentences", "description": "sentences per training step", "default": 64}, "temperature": {"symbol": "\u03c4", "unit": "", "description": "temperature of the contrastive loss", "default": 0.05}, "augmentation": {"symbol": "", "unit": "", "description": "augmentations in addition to dropout, joined with `+`", "default": "none"}, "augmentation_draw": {"symbol": "", "unit": "", "description": "what cut-offs and position shuffle may change: a sentence''s tokens but [CLS]; `published-code`: any of `max_length` positions, at least one, and one permutation for a whole batch, as in MoCoSE''s program", "default": "tokens"}, "loss_weight": {"symbol": "", "unit": "", "description": "factor of the loss before its gradient is computed; recorded losses are without it", "default": 1.0}, "learning_rate": {"symbol": "", "unit": "", "description": "highest learning rate of AdamW; after `warmup_steps` it decays linearly to 0", "default": 3e-05}, "warmup_steps": {"symbol": "", "unit": "steps", "description": "steps over which the learning rate rises linearly from 0; 0: none", "default": 0}, "weight_decay": {"symbol": "", "unit": "", "description": "weight decay of AdamW", "default": 1e-06}, "weight_decay_exceptions": {"symbol": "", "unit": "", "description": "parameters without weight decay: none, or biases and LayerNorms", "default": "none"}, "adam_beta1": {"symbol": "\u03b2\u2081", "unit": "", "description": "decay of AdamW''s mean of gradients", "default": 0.9}, "adam_beta2": {"symbol": "\u03b2\u2082", "unit": "", "description": "decay of AdamW''s mean of squared gradients", "default": 0.999}, "adam_epsilon": {"symbol": "", "unit": "", "description": "\u03b5 in the denominator of AdamW''s step", "default": 1e-08}, "adam_bias_correction": {"symbol": "", "unit": "", "description": "whether AdamW corrects both means for their start at 0", "default": true}, "adam_formula": {"symbol": "", "unit": "", "description": "order within AdamW''s step: `torch`: decay, then a step with \u03b5 after the bias correction; `transformers` (its version 4): a step with \u03b5 before the bias correction, then decay", "default": "torch"}, "max_gradient_norm": {"symbol": "", "unit": "", "description": "L2 norm of all gradients together above which they are scaled down to it; 0: no clipping", "default": 0.0}, "dropout": {"symbol": "", "unit": "", "description": "dropout rate of encoder and heads", "default": 0.1}, "dropout_fields": {"symbol": "", "unit": "", "description": "fields of the encoder''s configuration that are dropout rates, for a family that is not known: `[resid_pdrop]`; `none`: it has no dropout; empty: those of a known family", "default": ""}, "lora_rank": {"symbol": "", "unit": "", "description": "rank of the adapters that are trained instead of the encoder''s weights (LoRA, extra `peft`); 0: the weights themselves are trained", "default": 0}, "lora_alpha": {"symbol": "", "unit": "", "description": "scale of the adapters: their output is multiplied by `lora_alpha` / `lora_rank`", "default": 16}, "lora_targets": {"symbol": "", "unit": "", "description": "layers with adapters: `all-linear`, or ends of their names: `[q_proj, v_proj]`", "default": "all-linear"}, "max_length": {"symbol": "", "unit": "tokens", "description": "tokens per training sentence; longer sentences are truncated", "default": 32}, "steps": {"symbol": "", "unit": "steps", "description": "training steps", "default": 15625}, "sentences": {"symbol": "", "unit": "sentences", "description": "training sentences in place of `steps`, which are then \u230a`sentences` / `batch_size`\u230b; a document or a pair counts as one", "default": null}, "evaluate_every": {"symbol": "", "unit": "steps", "description": "steps between two evaluations", "default": 100}, "probe_every": {"symbol": "", "unit": "steps", "description": "steps between two measurements of the change of keys, on 64 sentences; 0: none", "default": 0}, "seed": {"symbol": "", "unit": "", "description": "random seed of a run; a study lists its seeds under `seeds`", "default": 0}, "device": {"symbol": "", "unit": "", "description": "`auto`, `cpu`, `cuda`, or `cuda:1`", "default": "auto"}, "precision": {"symbol": "", "unit": "", "description": "`auto`: bfloat16 on hardware with instructions for it, else float32", "default": "auto"}, "head_initialisation": {"symbol": "", "unit": "", "description": "initial weights of the heads: those of torch; `normal`: normal with standard deviation 0.02, biases 0; `bert`: the same, and the pooler that was pre-trained with the encoder, if it has one", "default": "torch"}, "ema_decay": {"symbol": "\u03b7", "unit": "", "description": "decay of the moving average of weights (momentum encoder) per step", "default": 0.85}, "target_initialisation": {"symbol": "", "unit": "", "description": "weights that the momentum encoder starts from: those of the encoder, or random ones, as before pre-training", "default": "copy"}, "queue_size": {"symbol": "K", "unit": "keys", "description": "keys of earlier batches that serve as negatives", "default": 512}, "ema_decay_end": {"symbol": "", "unit": "", "description": "end of a cosine schedule of the EMA decay", "default": null}, "ema_schedule_steps": {"symbol": "", "unit": "steps", "description": "length of that schedule; by default `steps`", "default": null}, "ema_order": {"symbol": "", "unit": "", "description": "when the momentum encoder is updated; `before-target`: before the forward pass of the target branch, as in the published program", "default": "after-step"}, "initial_queue_size": {"symbol": "K_s", "unit": "keys", "description": "random unit vectors that the queue starts with; by default min(128, K)", "default": 128}, "queue_slice": {"symbol": "", "unit": "", "description": "positions that enter the loss once the queue is full, 0 the newest: `0-256,768-1024`", "default": "all"}, "queue_fill": {"symbol": "", "unit": "", "description": "filling of the queue; `published`: with the excess of the authors'' program", "default": "exact"}, "queue_clusters": {"symbol": "", "unit": "", "description": "centroids that replace the queue''s keys: 1 their mean, k those of k-means; 0 none", "default": 0}, "in_batch_negatives": {"symbol": "", "unit": "", "description": "whether other keys of the batch are negatives too; false: the queue alone (equation 3)", "default": true}, "equivalent_negatives": {"symbol": "\u03b1", "unit": "", "description": "negatives to whose sum that of the negatives in use is scaled, so that the size of the loss does not depend on their number (EqCo); 0: it is not scaled", "default": 0}, "positive_branch": {"symbol": "", "unit": "", "description": "branch that makes the positive of a query and the in-batch negatives; `online`: with gradient and without the prediction head, so that the EMA decay acts on the queue alone", "default": "target"}, "target": {"symbol": "", "unit": "", "description": "weights of the target branch: the average of the online branch''s; `frozen`: those it starts with, embeddings included, so that keys do not age and there is no MTD", "default": "ema"}, "detach_keys": {"symbol": "", "unit": "", "description": "whether gradients through the keys are stopped", "default": true}, "target_dropout": {"symbol": "", "unit": "", "description": "whether the target branch uses dropout", "default": true}, "augmented_branch": {"symbol": "", "unit": "", "description": "branch that reads the text changed by `augmentation`; the other one reads the original text", "default": "online"}, "fgsm_epsilon": {"symbol": "\u03b5", "unit": "", "description": "step of the FGSM perturbation of the word embeddings; 0: none", "default": 5e-09}, "fgsm_gradient": {"symbol": "", "unit": "", "description": "batch whose gradient FGSM uses; `current` needs a second pass per step", "default": "previous"}, "projection_layers": {"symbol": "", "unit": "layers", "description": "layers of the projection head", "default": 1}, "prediction_layers": {"symbol": "", "unit": "layers", "description": "layers of the prediction head", "default": 2}, "prediction_dim": {"symbol": "", "unit": "", "description": "dimension of queries, keys and queue: of the outputs of projection and prediction head; by default the encoder''s", "default": null}, "predictor_hidden_dim": {"symbol": "", "unit": "", "description": "dimension inside the prediction head; by default that of its output", "default": null}, "head_norm_eps": {"symbol": "", "unit": "", "description": "\u03b5 of the LayerNorms in the heads", "default": 1e-05}}}}','float32',NULL,'{"study": "drawn", "metric": "sts_dev", "trainer": {"batch_size": 8, "steps": 4, "evaluate_every": 2, "initial_queue_size": 0}, "search": {"ema_decay": {"low": 0.5, "high": 0.9}, "queue_size": {"low": 8, "high": 64, "step": 8}}, "sampler": "random", "pruner": "median", "trials": 3, "seeds": [0, 1]}','/studies','{"ema_decay": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.5, \"high\": 0.9, \"log\": false}}", "queue_size": "{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 8, \"low\": 8, \"high\": 64}}"}','{"versions": {"Python": "3.11.7", "mtdlab": "0.1.0", "torch": "2.13.0+cpu", "transformers": "5.23.0", "optuna": "5.0.0", "numpy": "2.4.6", "commit": "cdbf163-dirty"}}',NULL,NULL,3,3);
CREATE TABLE mtdlab_sweeps (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	study_id INTEGER NOT NULL, 
	owner JSON NOT NULL, 
	heartbeat DOUBLE NOT NULL, 
	stop BOOLEAN NOT NULL, 
	is_over BOOLEAN NOT NULL, 
	max_failed INTEGER, 
	error JSON, 
	FOREIGN KEY(study_id) REFERENCES mtdlab_studies (id) ON DELETE CASCADE
);
CREATE TABLE mtdlab_trials (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	role VARCHAR NOT NULL, 
	configuration VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	leads BOOLEAN NOT NULL, 
	parameters JSON, 
	state VARCHAR NOT NULL, 
	number INTEGER, 
	began DOUBLE, 
	ended DOUBLE, 
	owner JSON, 
	heartbeat DOUBLE, 
	sweep INTEGER, 
	step INTEGER NOT NULL, 
	phase VARCHAR NOT NULL, 
	settings JSON, 
	reason VARCHAR NOT NULL, 
	reason_code VARCHAR NOT NULL, 
	deaths INTEGER NOT NULL, 
	note VARCHAR NOT NULL, 
	traceback VARCHAR NOT NULL, 
	reports JSON, 
	attributes JSON, 
	mtd DOUBLE, 
	score DOUBLE, 
	score_before DOUBLE, 
	alignment DOUBLE, 
	uniformity DOUBLE, 
	mean_cosine DOUBLE, 
	best_step INTEGER, 
	wall_seconds DOUBLE, 
	peak_memory DOUBLE, 
	environment VARCHAR, 
	PRIMARY KEY (id), 
	UNIQUE (study_id, configuration, seed), 
	UNIQUE (study_id, number), 
	FOREIGN KEY(study_id) REFERENCES mtdlab_studies (id) ON DELETE CASCADE
);
INSERT INTO "mtdlab_trials" VALUES(1,1,0,'search','28b0e45628716712',0,1,'{"ema_decay": 0.5, "queue_size/batch_size": 1, "initial_queue_size": 0}','COMPLETE',0,1.79553866852399563792e+09,1.79553866855501532548e+09,NULL,1.79553866847499156e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.5, "target_initialisation": "copy", "queue_size": 8, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,3.0,45.0,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(2,1,1,'search','06bb4571673d8566',0,1,'{"ema_decay": 0.5, "queue_size/batch_size": 2, "initial_queue_size": 0}','FAIL',1,1.79553866874101305008e+09,1.79553866877299833299e+09,NULL,1.79553866871401667602e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.5, "target_initialisation": "copy", "queue_size": 16, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','the loss is nan at step 3','nan_loss',0,'','',NULL,NULL,4.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(3,1,2,'search','ead3651dbb67891a',0,1,'{"ema_decay": 0.75, "queue_size/batch_size": 1, "initial_queue_size": 0}','COMPLETE',2,1795538668.863,1.79553866889800286298e+09,NULL,1.79553866882598543164e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.75, "target_initialisation": "copy", "queue_size": 8, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'model not saved: OSError: [Errno 28] No space left on device','',NULL,NULL,5.0,47.5,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(4,1,3,'search','e3d2228416ac83f2',0,1,'{"ema_decay": 0.75, "queue_size/batch_size": 2, "initial_queue_size": 0}','COMPLETE',3,1.79553866902900195116e+09,1.79553866906098723407e+09,NULL,1.79553866897798633569e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.75, "target_initialisation": "copy", "queue_size": 16, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,6.0,47.5,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(5,1,4,'search','28b0e45628716712',1,0,'{"ema_decay": 0.5, "queue_size/batch_size": 1, "initial_queue_size": 0}','COMPLETE',4,1.79553866918900918965e+09,1.79553866922099447257e+09,NULL,1.79553866913799333579e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.5, "target_initialisation": "copy", "queue_size": 8, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,3.0,46.0,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(6,1,5,'search','06bb4571673d8566',1,0,'{"ema_decay": 0.5, "queue_size/batch_size": 2, "initial_queue_size": 0}','COMPLETE',5,1.79553866935299921031e+09,1.79553866940699219704e+09,NULL,1.79553866930298948283e+09,1,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.5, "target_initialisation": "copy", "queue_size": 16, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,4.0,46.0,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(7,1,6,'search','ead3651dbb67891a',1,0,'{"ema_decay": 0.75, "queue_size/batch_size": 1, "initial_queue_size": 0}','WAITING',6,1.7955386695610046386e+09,NULL,NULL,NULL,NULL,0,'','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.75, "target_initialisation": "copy", "queue_size": 8, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,5.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "mtdlab_trials" VALUES(8,1,7,'search','e3d2228416ac83f2',1,0,'{"ema_decay": 0.75, "queue_size/batch_size": 2, "initial_queue_size": 0}','WAITING',NULL,NULL,NULL,NULL,NULL,NULL,0,'',NULL,'','',0,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "mtdlab_trials" VALUES(9,2,0,'search','sample-00000',0,1,'{"ema_decay": 0.7195254015709299, "queue_size": 48}','COMPLETE',0,1.79553867041398739811e+09,1.7955386704419896602e+09,NULL,1.79553867034398174288e+09,2,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.7195254015709299, "target_initialisation": "copy", "queue_size": 48, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,9.56538526341055650448e+00,4.71952540157092954604e+01,10.5,0.25,-2.5,0.125,4,1.5,536870912.0,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(10,2,1,'search','sample-00000',1,0,'{"ema_decay": 0.7195254015709299, "queue_size": 48}','PRUNED',1,1.79553867148398756982e+09,1.79553867152200794217e+09,NULL,1.79553867144999051096e+09,2,0,'loading','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.7195254015709299, "target_initialisation": "copy", "queue_size": 48, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','pruned at step 2','',0,'','',NULL,NULL,9.56538526341055650448e+00,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'{"corpus": {"name": "builtin", "amount": 24000, "unit": "sentences", "sha256": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "unknown_token": "", "unknown": []}, "encoder": {"name": "builtin", "weights": 890000, "representation": "cls pooling", "kind": ""}, "evaluation": null, "program": null, "device": "cpu", "precision": "float32", "threads": 1, "architecture": "", "instructions": "", "processor": "", "versions": {}, "commit": ""}');
INSERT INTO "mtdlab_trials" VALUES(11,2,2,'search','sample-00001',0,1,'{"ema_decay": 0.6668088018810296, "queue_size": 48}','WAITING',2,1.79553867160601472851e+09,NULL,NULL,NULL,NULL,0,'','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "batch_size": 8, "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "ema_decay": 0.6668088018810296, "target_initialisation": "copy", "queue_size": 48, "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}','','',0,'','',NULL,NULL,9.00127976262727358403e+00,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "mtdlab_trials" VALUES(12,2,3,'search','sample-00001',1,0,'{"ema_decay": 0.6668088018810296, "queue_size": 48}','WAITING',NULL,NULL,NULL,NULL,NULL,NULL,0,'',NULL,'','',0,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "mtdlab_trials" VALUES(13,2,4,'search','sample-00002',0,1,NULL,'WAITING',NULL,NULL,NULL,NULL,NULL,NULL,0,'',NULL,'','',0,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "mtdlab_trials" VALUES(14,2,5,'search','sample-00002',1,0,NULL,'WAITING',NULL,NULL,NULL,NULL,NULL,NULL,0,'',NULL,'','',0,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'grid');
INSERT INTO "studies" VALUES(2,'drawn');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
INSERT INTO "study_directions" VALUES(2,'MAXIMIZE',2,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_user_attributes" VALUES(1,1,'metric','"sts_test"');
INSERT INTO "study_user_attributes" VALUES(2,1,'select_by','"sts_dev"');
INSERT INTO "study_user_attributes" VALUES(3,1,'folder','"/studies"');
INSERT INTO "study_user_attributes" VALUES(4,2,'metric','"sts_dev"');
INSERT INTO "study_user_attributes" VALUES(5,2,'select_by','"sts_dev"');
INSERT INTO "study_user_attributes" VALUES(6,2,'folder','"/studies"');
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,2,5.41461229324340820312e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(2,1,4,4.22687232494354248046e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(3,3,2,6.83064818382263183593e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(4,3,4,1.87252566218376159667e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(5,4,2,6.4854723215103149414e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(6,4,4,2.92720735073089599609e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(7,5,2,9.29026365280151367187e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(8,5,4,6.08851611614227294921e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(9,6,2,4.93023008108139038085e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(10,6,4,6.08027130365371704101e-02,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(11,7,2,5.41461229324340820312e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(12,7,4,4.22687232494354248046e-01,'FINITE');
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'ema_decay',0.5,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(2,1,'queue_size/batch_size',1.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(3,1,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(4,2,'ema_decay',0.5,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(5,2,'queue_size/batch_size',2.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(6,2,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(7,3,'ema_decay',0.75,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(8,3,'queue_size/batch_size',1.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(9,3,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(10,4,'ema_decay',0.75,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(11,4,'queue_size/batch_size',2.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(12,4,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(13,5,'ema_decay',0.5,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(14,5,'queue_size/batch_size',1.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(15,5,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(16,6,'ema_decay',0.5,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.75, "log": false}}');
INSERT INTO "trial_params" VALUES(17,6,'queue_size/batch_size',2.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(18,6,'initial_queue_size',0.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 0, "high": 0}}');
INSERT INTO "trial_params" VALUES(19,7,'ema_decay',7.19525401570929923344e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(20,7,'queue_size',48.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
INSERT INTO "trial_params" VALUES(21,8,'ema_decay',7.19525401570929923344e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(22,8,'queue_size',48.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 8, "low": 8, "high": 64}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'mtd','3.0');
INSERT INTO "trial_user_attributes" VALUES(2,1,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(3,1,'ema_decay','0.5');
INSERT INTO "trial_user_attributes" VALUES(4,1,'queue_size','8');
INSERT INTO "trial_user_attributes" VALUES(5,1,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(6,1,'sts_dev','46.0');
INSERT INTO "trial_user_attributes" VALUES(7,1,'sts_test','45.0');
INSERT INTO "trial_user_attributes" VALUES(8,1,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(9,2,'mtd','4.0');
INSERT INTO "trial_user_attributes" VALUES(10,2,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(11,2,'ema_decay','0.5');
INSERT INTO "trial_user_attributes" VALUES(12,2,'queue_size','16');
INSERT INTO "trial_user_attributes" VALUES(13,2,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(14,2,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(15,2,'reason','"the loss is nan at step 3"');
INSERT INTO "trial_user_attributes" VALUES(16,3,'mtd','5.0');
INSERT INTO "trial_user_attributes" VALUES(17,3,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(18,3,'ema_decay','0.75');
INSERT INTO "trial_user_attributes" VALUES(19,3,'queue_size','8');
INSERT INTO "trial_user_attributes" VALUES(20,3,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(21,3,'sts_dev','48.5');
INSERT INTO "trial_user_attributes" VALUES(22,3,'sts_test','47.5');
INSERT INTO "trial_user_attributes" VALUES(23,3,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(24,3,'note','"model not saved: OSError: [Errno 28] No space left on device"');
INSERT INTO "trial_user_attributes" VALUES(25,4,'mtd','6.0');
INSERT INTO "trial_user_attributes" VALUES(26,4,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(27,4,'ema_decay','0.75');
INSERT INTO "trial_user_attributes" VALUES(28,4,'queue_size','16');
INSERT INTO "trial_user_attributes" VALUES(29,4,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(30,4,'sts_dev','48.5');
INSERT INTO "trial_user_attributes" VALUES(31,4,'sts_test','47.5');
INSERT INTO "trial_user_attributes" VALUES(32,4,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(33,5,'mtd','3.0');
INSERT INTO "trial_user_attributes" VALUES(34,5,'seed','1');
INSERT INTO "trial_user_attributes" VALUES(35,5,'ema_decay','0.5');
INSERT INTO "trial_user_attributes" VALUES(36,5,'queue_size','8');
INSERT INTO "trial_user_attributes" VALUES(37,5,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(38,5,'sts_dev','47.0');
INSERT INTO "trial_user_attributes" VALUES(39,5,'sts_test','46.0');
INSERT INTO "trial_user_attributes" VALUES(40,5,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(41,6,'mtd','4.0');
INSERT INTO "trial_user_attributes" VALUES(42,6,'seed','1');
INSERT INTO "trial_user_attributes" VALUES(43,6,'ema_decay','0.5');
INSERT INTO "trial_user_attributes" VALUES(44,6,'queue_size','16');
INSERT INTO "trial_user_attributes" VALUES(45,6,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(46,6,'sts_dev','47.0');
INSERT INTO "trial_user_attributes" VALUES(47,6,'sts_test','46.0');
INSERT INTO "trial_user_attributes" VALUES(48,6,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(49,7,'mtd','9.565385263410557');
INSERT INTO "trial_user_attributes" VALUES(50,7,'seed','0');
INSERT INTO "trial_user_attributes" VALUES(51,7,'ema_decay','0.7195254015709299');
INSERT INTO "trial_user_attributes" VALUES(52,7,'queue_size','48');
INSERT INTO "trial_user_attributes" VALUES(53,7,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(54,7,'sts_dev','48.195254015709295');
INSERT INTO "trial_user_attributes" VALUES(55,7,'sts_test','47.195254015709295');
INSERT INTO "trial_user_attributes" VALUES(56,7,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(57,8,'mtd','9.565385263410557');
INSERT INTO "trial_user_attributes" VALUES(58,8,'seed','1');
INSERT INTO "trial_user_attributes" VALUES(59,8,'ema_decay','0.7195254015709299');
INSERT INTO "trial_user_attributes" VALUES(60,8,'queue_size','48');
INSERT INTO "trial_user_attributes" VALUES(61,8,'batch_size','8');
INSERT INTO "trial_user_attributes" VALUES(62,8,'settings','{"method": "mocose", "preset": "intended", "encoder": "builtin", "pooling": "cls", "training_pooling": "same", "prompt": "", "segment_length": 0, "corpus": "builtin", "evaluation": "builtin", "tasks": "", "select_on": "dev", "temperature": 0.05, "augmentation": "none", "augmentation_draw": "tokens", "loss_weight": 1.0, "learning_rate": 3e-05, "warmup_steps": 0, "weight_decay": 1e-06, "weight_decay_exceptions": "none", "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-08, "adam_bias_correction": true, "adam_formula": "torch", "max_gradient_norm": 0.0, "dropout": 0.1, "dropout_fields": "", "lora_rank": 0, "lora_alpha": 16, "lora_targets": "all-linear", "max_length": 32, "steps": 4, "sentences": null, "evaluate_every": 2, "probe_every": 0, "device": "auto", "precision": "auto", "head_initialisation": "torch", "target_initialisation": "copy", "ema_decay_end": null, "ema_schedule_steps": null, "ema_order": "after-step", "initial_queue_size": 0, "queue_slice": "all", "queue_fill": "exact", "queue_clusters": 0, "in_batch_negatives": true, "equivalent_negatives": 0, "positive_branch": "target", "target": "ema", "detach_keys": true, "target_dropout": true, "augmented_branch": "online", "fgsm_epsilon": 5e-09, "fgsm_gradient": "previous", "projection_layers": 1, "prediction_layers": 2, "prediction_dim": null, "predictor_hidden_dim": null, "head_norm_eps": 1e-05}');
INSERT INTO "trial_user_attributes" VALUES(63,8,'reason','"pruned at step 2"');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,46.0,'FINITE');
INSERT INTO "trial_values" VALUES(2,3,0,48.5,'FINITE');
INSERT INTO "trial_values" VALUES(3,4,0,48.5,'FINITE');
INSERT INTO "trial_values" VALUES(4,5,0,47.0,'FINITE');
INSERT INTO "trial_values" VALUES(5,6,0,47.0,'FINITE');
INSERT INTO "trial_values" VALUES(6,7,0,4.71952540157092954604e+01,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-24 16:44:28.523996','2026-11-24 16:44:28.555015');
INSERT INTO "trials" VALUES(2,1,1,'FAIL','2026-11-24 16:44:28.741013','2026-11-24 16:44:28.772998');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-24 16:44:28.863000','2026-11-24 16:44:28.898003');
INSERT INTO "trials" VALUES(4,3,1,'COMPLETE','2026-11-24 16:44:29.029002','2026-11-24 16:44:29.060987');
INSERT INTO "trials" VALUES(5,4,1,'COMPLETE','2026-11-24 16:44:29.189009','2026-11-24 16:44:29.220994');
INSERT INTO "trials" VALUES(6,5,1,'COMPLETE','2026-11-24 16:44:29.352999','2026-11-24 16:44:29.406992');
INSERT INTO "trials" VALUES(7,0,2,'COMPLETE','2026-11-24 16:44:30.413987','2026-11-24 16:44:30.441990');
INSERT INTO "trials" VALUES(8,1,2,'PRUNED','2026-11-24 16:44:31.483988','2026-11-24 16:44:31.522008');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE INDEX ix_mtdlab_trials_study_id ON mtdlab_trials (study_id);
CREATE INDEX ix_mtdlab_trials_sweep ON mtdlab_trials (sweep, state);
CREATE INDEX ix_mtdlab_trials_next ON mtdlab_trials (study_id, state, position);
CREATE INDEX ix_mtdlab_trials_state ON mtdlab_trials (state);
CREATE INDEX ix_mtdlab_sweeps_study_id ON mtdlab_sweeps (study_id);
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
CREATE INDEX ix_mtdlab_copies ON trials (study_id, number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('mtdlab_studies',2);
INSERT INTO "sqlite_sequence" VALUES('mtdlab_sweeps',2);
COMMIT;
